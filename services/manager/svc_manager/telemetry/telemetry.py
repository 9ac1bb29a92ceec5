"""Telemetry of all experiments: metrics and traces of appended events."""

from collections.abc import Sequence

from svc_common.telemetry.metrics import Registry
from svc_common.telemetry.tracing import NoOpTracer, Tracer
from svc_manager.domain import events
from svc_manager.domain.state import Experiment
from svc_manager.telemetry.metrics import Instruments
from svc_manager.telemetry.traces import TrialTraces


class Telemetry:
    """Recorder of appended events as metrics and, if there is a tracer, spans.

    Args:
        instruments: metrics; None: metrics that are not exported.
        tracer: exports spans; None: nothing is traced.
    """

    def __init__(
        self, instruments: Instruments | None = None, tracer: Tracer | None = None
    ) -> None:
        self.instruments = instruments or Instruments(Registry())
        self._traces = None if tracer is None else TrialTraces(tracer)
        self._untraced = NoOpTracer()

    def record_events(
        self, experiment: Experiment, events: Sequence[events.Event], now_ms: int
    ) -> None:
        """Pass appended events to the metrics and, if there is a tracer, to the spans."""
        self.instruments.record_events(experiment, events, now_ms)
        if self._traces is not None:
            self._traces.record_events(experiment, events, now_ms)

    def record_decision(self, duration_s: float) -> None:
        """Record the time from the first input of a round until its events are appended."""
        self.instruments.record_decision(duration_s)

    def traceparent(self, experiment_id: str, parameter_id: int) -> str:
        """Return the trace context of a trial's task; empty: it is not traced."""
        traces = self._traces or self._untraced
        return traces.traceparent(experiment_id, parameter_id)
