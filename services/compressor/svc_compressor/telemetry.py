"""Metrics and traces of compression jobs."""

from svc_common.clock import Clock
from svc_common.telemetry.metrics import Registry
from svc_common.telemetry.tracing import NoOpTracer, Tracer, TrialSpan
from svc_compressor.domain.reports import GaveUp, Report, StepGenerated


class Telemetry:
    """Recorder of the compressor's metrics and traces: steps, and jobs that cannot continue.

    Args:
        clock: gives the times of spans.
        registry: receives the metrics; None: a registry that is not served.
        tracer: receives the spans; None: nothing is traced.
    """

    def __init__(
        self, clock: Clock, registry: Registry | None = None, tracer: Tracer | None = None
    ) -> None:
        self._clock = clock
        self._tracer = tracer or NoOpTracer()
        registry = registry or Registry()
        self._steps = registry.counter(
            "nni_compression_steps_total",
            "Steps of jobs given to the manager",
            ("kind",),
        )
        self._failed = registry.counter(
            "nni_compression_failures_total", "Jobs that were given up, resumptions counted anew"
        )

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return int(self._clock.now().timestamp() * 1000)

    def report_sent(self, experiment_id: str, report: Report, due_ms: int) -> None:
        """Count and trace a sent step, or count a failed job; ignore other reports.

        Args:
            experiment_id: id of the job's experiment.
            report: the report.
            due_ms: time at which it was due, in milliseconds since 1970.
        """
        if isinstance(report, GaveUp):
            self._failed.inc()
        elif isinstance(report, StepGenerated):
            self._steps.inc(report.step.kind)
            self._tracer.record(
                TrialSpan(
                    "parameters.generate",
                    experiment_id,
                    report.parameter_id,
                    due_ms,
                    self.now_ms(),
                    ("generate",),
                    attributes={
                        "nni.experiment_id": experiment_id,
                        "nni.request_id": report.request_id,
                        "nni.parameter_id": report.parameter_id,
                        "nni.step": report.step.number,
                        "nni.step_kind": report.step.kind,
                    },
                )
            )
