"""One round of decisions: inputs in, events out.

A round folds each event at once, so that later decisions of the round see it; only the events leave
the round. Folding them into the earlier state gives the same later state (a test proves it).
"""

from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    ExperimentCause,
    ExperimentReason,
    StopReason,
)
from svc_manager.domain import events
from svc_manager.domain.callers import Answer, Callers
from svc_manager.domain.effects import Effect, effects_of
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.fold import fold
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import EncodedValue, ParameterSource, TrialIds


class Round:
    """Collector of one decision round's events and effects, which folds each event at once.

    Args:
        experiment: the state; owned by the round while it lasts.
        now_ms: the time of the round, ms since 1970.
        ids: source of new trial ids.
        callers: asks and leases of callers, of the owner of the log; None: there are none yet.
    """

    __slots__ = ("answers", "callers", "effects", "events", "experiment", "ids", "now_ms")

    def __init__(
        self,
        experiment: Experiment,
        now_ms: int,
        ids: TrialIds,
        callers: Callers | None = None,
    ) -> None:
        self.experiment = experiment
        self.now_ms = now_ms
        self.ids = ids
        self.events: list[events.Event] = []
        self.effects: list[Effect] = []
        """Effects to run once the events are in the log."""
        self.callers = Callers() if callers is None else callers
        self.answers: dict[str, Answer] = {}
        """Answers to asks of callers by request id, valid once the events are in the log."""

    def emit(self, event: events.Event) -> None:
        """Collect an event and its effects, and apply the event to the experiment's state."""
        self.effects.extend(effects_of(event, self.experiment))
        fold(self.experiment, event, self.now_ms)
        self.events.append(event)

    def add_effect(self, effect: Effect) -> None:
        """Collect an effect that follows from no new event."""
        self.effects.append(effect)

    def change_state(
        self,
        state: ExperimentState,
        cause: ExperimentCause = ExperimentCause.UNSPECIFIED,
        detail: str = "",
    ) -> None:
        """Emit a change of the experiment's state, with cause and execution time so far."""
        experiment = self.experiment
        self.emit(
            events.ExperimentStateChanged(
                experiment.state,
                state,
                ExperimentReason(cause, detail),
                experiment.execution_time_ms(self.now_ms),
            )
        )

    def count_time(self, until_ms: int) -> None:
        """Emit the execution time up to ``until_ms``; the time from then to the round is left out.

        For an experiment whose time counts.
        """
        until_ms = min(until_ms, self.now_ms)
        self.emit(events.ExperimentTimeCounted(self.experiment.execution_time_ms(until_ms)))

    def end_experiment(
        self,
        state: ExperimentState,
        cause: ExperimentCause = ExperimentCause.UNSPECIFIED,
        detail: str = "",
    ) -> None:
        """Emit `ExperimentEnded` with the final state of this run (STOPPED or ERROR) and cause."""
        self.emit(events.ExperimentEnded(state, ExperimentReason(cause, detail)))

    def create_trial(
        self, parameter_id: int, parameters: EncodedValue, source: ParameterSource
    ) -> Trial:
        """Emit `TrialScheduled` for a new trial with these parameters; return the trial."""
        experiment = self.experiment
        trial_id = self.ids.trial_id()
        while trial_id in experiment.trials:
            trial_id = self.ids.trial_id()
        sequence_id = len(experiment.trials)
        pool = experiment.settings.pool
        self.emit(
            events.TrialScheduled(trial_id, sequence_id, parameter_id, parameters, source, pool)
        )
        return experiment.trials[trial_id]

    def end_trial(self, trial: Trial, state: TrialState, end: EndReason) -> None:
        """Emit `TrialEnded` now, without an exit code: an end that the manager itself decided."""
        # The agent that started it may have another clock.
        ended_at_ms = max(self.now_ms, trial.started_at_ms)
        self.emit(
            events.TrialEnded(
                trial.id, trial.attempt, state, None, ended_at_ms, end, trial.report_sequence
            )
        )

    def cancel_trial(self, trial: Trial, state: TrialState, stop: StopReason) -> None:
        """End a live trial in ``state``: by a stop order if an agent runs it, else at once.

        An UNKNOWN trial ends at once: should its agent return, it gets a drop order. One that a
        caller runs ends at once, too: its result is refused.
        """
        if trial.state is not TrialState.RUNNING or self.experiment.settings.has_callers:
            self.end_trial(trial, state, EndReason(EndCause.STOPPED, stop=stop))
        elif trial.asked_end is None:
            self.emit(events.TrialStopRequested(trial.id, state, stop))
