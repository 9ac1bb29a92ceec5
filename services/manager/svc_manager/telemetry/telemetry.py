"""Who sees the facts of all experiments as they get into their logs: figures and traces."""

from collections.abc import Sequence

from svc_common.telemetry.metrics import Registry
from svc_common.telemetry.tracing import NoOpTracer, Tracer
from svc_manager.domain import events
from svc_manager.domain.state import Experiment
from svc_manager.telemetry.metrics import Instruments
from svc_manager.telemetry.traces import TrialTraces


class Telemetry:
    """Passes facts on to those who count and trace them; decides nothing.

    Args:
        instruments: figures; None: some that nobody looks at.
        tracer: None: nothing is traced.
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
        """Take note of facts that are stored and folded."""
        self.instruments.record_events(experiment, events, now_ms)
        if self._traces is not None:
            self._traces.record_events(experiment, events, now_ms)

    def record_decision(self, duration_s: float) -> None:
        """Take note of how long facts took, from the first word that led to them."""
        self.instruments.record_decision(duration_s)

    def traceparent(self, experiment_id: str, parameter_id: int) -> str:
        """Return the trace context that a trial's task carries; empty: it is not traced."""
        traces = self._traces or self._untraced
        return traces.traceparent(experiment_id, parameter_id)
