"""Metrics and traces of algorithm hosts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from svc_common.clock import Clock
from svc_common.telemetry.metrics import Registry
from svc_common.telemetry.tracing import NoOpTracer, Tracer, TrialSpan
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.commands import Command, Generate

_MS_PER_S: Final = 1000


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    """Time at which parameters were requested from a host that has not answered yet."""

    at_s: float
    at_ms: int


class Telemetry:
    """Recorder of the dispatcher's metrics and traces: hosts, answer times, failures.

    Args:
        clock: measures how long answers take.
        registry: receives the metrics; None: a registry that is not served.
        tracer: receives the spans; None: nothing is traced.
    """

    def __init__(
        self, clock: Clock, registry: Registry | None = None, tracer: Tracer | None = None
    ) -> None:
        self._clock = clock
        self._tracer = tracer or NoOpTracer()
        self._pending: dict[tuple[str, str], _PendingRequest] = {}
        self._hosts = 0
        registry = registry or Registry()
        self._ask_seconds = registry.histogram(
            "nni_algorithm_ask_seconds",
            "From the request for parameters at an algorithm host until its answer",
        )
        self._generated = registry.counter(
            "nni_parameters_generated_total", "Sets of parameters that algorithms have made"
        )
        self._advised = registry.counter(
            "nni_stops_advised_total", "Trials that an assessor or advisor wants stopped"
        )
        self._failed = registry.counter(
            "nni_algorithm_failures_total", "Calls of algorithms that raised", ("call",)
        )
        self._started = registry.counter(
            "nni_algorithm_host_starts_total", "Processes of algorithms that were started"
        )
        self._died = registry.counter(
            "nni_algorithm_host_deaths_total",
            "Processes of algorithms that ended unasked; each is followed by another or an error",
        )
        registry.gauge(
            "nni_algorithm_hosts",
            "Processes of algorithms that there are now",
            lambda: [((), float(self._hosts))],
        )

    def host_started(self) -> None:
        """Count a host that was launched."""
        self._hosts += 1
        self._started.inc()

    def host_died(self) -> None:
        """Count a host that ended without a request to end."""
        self._died.inc()

    def host_closed(self, experiment_id: str) -> None:
        """Reduce the number of live hosts; forget the experiment's pending requests."""
        self._hosts -= 1
        for key in [key for key in self._pending if key[0] == experiment_id]:
            del self._pending[key]

    def commands_sent(self, experiment_id: str, commands: Iterable[Command]) -> None:
        """Record when each request for parameters was sent, to measure the answer's latency."""
        for command in commands:
            if isinstance(command, Generate) and not command.replayed:
                key = (experiment_id, command.request_id)
                self._pending[key] = _PendingRequest(self._clock.monotonic_s(), self._now_ms())

    def outputs_received(self, experiment_id: str, outputs: Iterable[answers.Output]) -> None:
        """Record answer times and spans; count parameters, stop advice and failed calls."""
        for output in outputs:
            if isinstance(output, answers.Generated):
                self._answered(experiment_id, output)
            elif isinstance(output, answers.StopAdvised):
                self._advised.inc()
            elif isinstance(output, answers.CallFailed):
                self._failed.inc(output.call)

    def _answered(self, experiment_id: str, output: answers.Generated) -> None:
        pending = self._pending.pop((experiment_id, output.request_id), None)
        if pending is None and output.request_id:
            return  # of a replay: the log has the answer
        self._generated.inc(by=len(output.suggestions))
        if pending is None:
            return
        self._ask_seconds.observe(self._clock.monotonic_s() - pending.at_s)
        now_ms = self._now_ms()
        for suggestion in output.suggestions:
            self._tracer.record(
                TrialSpan(
                    "parameters.generate",
                    experiment_id,
                    suggestion.parameter_id,
                    pending.at_ms,
                    now_ms,
                    ("generate",),
                    attributes={
                        "nni.experiment_id": experiment_id,
                        "nni.request_id": output.request_id,
                        "nni.parameter_id": suggestion.parameter_id,
                        "nni.request_size": len(output.suggestions),
                    },
                )
            )

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * _MS_PER_S)
