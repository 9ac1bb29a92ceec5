"""Spans of a trial's trace that the manager records: the whole trial, and its time in the queue."""

from collections.abc import Sequence

from svc_common.experiment_events.cause_text import end_text
from svc_common.telemetry.tracing import Tracer, TrialSpan
from svc_manager.domain import events
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState


class TrialTraces:
    """Recorder of OpenTelemetry spans for trials, made from the appended events.

    A trial's span begins with the request for its parameters. The time of that request is kept in
    memory only: after a restart, the span begins with the creation of the trial.

    Args:
        tracer: exports the spans.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._requested_ms: dict[str, dict[int, int]] = {}

    def traceparent(self, experiment_id: str, parameter_id: int) -> str:
        """Return the trace context of a trial's task; empty: it is not traced."""
        return self._tracer.traceparent(experiment_id, parameter_id)

    def record_events(
        self, experiment: Experiment, appended: Sequence[events.Event], now_ms: int
    ) -> None:
        """Record spans for starts and ends of trials; keep or discard parameter requests' times."""
        for event in appended:
            match event:
                case events.TrialEnded():
                    self._ended(experiment, event, now_ms)
                case events.TrialStarted():
                    self._started(experiment, event)
                case events.TrialsRequested():
                    self._requested(experiment, event, now_ms)
                case events.ExperimentEnded():
                    self._requested_ms.pop(experiment.id, None)
                case _:
                    pass
        if any(isinstance(event, events.AlgorithmRequested) for event in appended):
            self._forget_dropped(experiment)

    def _requested(
        self, experiment: Experiment, event: events.TrialsRequested, now_ms: int
    ) -> None:
        times = self._requested_ms.setdefault(experiment.id, {})
        times.update(dict.fromkeys(event.parameter_ids, now_ms))

    def _forget_dropped(self, experiment: Experiment) -> None:
        """Drop times of requests that ended with an earlier generation of the algorithm."""
        times = self._requested_ms.get(experiment.id, {})
        algorithm = experiment.algorithm
        kept = {trial.parameter_id for trial in experiment.live.values()}
        kept.update(algorithm.late_ids, algorithm.queue, *algorithm.asked.values())
        for parameter_id in times.keys() - kept:
            del times[parameter_id]

    def _started(self, experiment: Experiment, event: events.TrialStarted) -> None:
        trial = experiment.trials[event.trial_id]
        if event.attempt == 1:
            self._tracer.record(
                TrialSpan(
                    "trial.queued",
                    experiment.id,
                    trial.parameter_id,
                    trial.created_at_ms,
                    event.started_at_ms,
                    ("queued",),
                    attributes={"nni.pool": trial.pool, "nni.runner_id": event.runner_id},
                )
            )

    def _ended(self, experiment: Experiment, event: events.TrialEnded, now_ms: int) -> None:
        trial = experiment.trials[event.trial_id]
        times = self._requested_ms.get(experiment.id, {})
        failed = event.state is TrialState.FAILED
        self._tracer.record(
            TrialSpan(
                "trial",
                experiment.id,
                trial.parameter_id,
                times.pop(trial.parameter_id, trial.created_at_ms),
                now_ms,
                parent=None,
                attributes={
                    "nni.experiment_id": experiment.id,
                    "nni.trial_id": trial.id,
                    "nni.sequence_id": trial.sequence_id,
                    "nni.parameter_id": trial.parameter_id,
                    "nni.state": event.state.name,
                    "nni.attempts": event.attempt,
                    "nni.result_count": trial.intermediate_count + (trial.final is not None),
                },
                error=end_text(event.end).partition("\n")[0] if failed else "",
            )
        )
