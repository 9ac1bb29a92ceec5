"""One round of decisions: inputs in, facts out.

A round folds each fact at once, so that what is decided next sees it; the facts are the only thing
that leaves it. Folding them from the state before gives the state after (a test proves it).
"""

from svc_manager.domain import events
from svc_manager.domain.effects import Effect, effects_of
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.fold import fold
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import TrialIds


class Round:
    """Collects the facts of one round and what follows from them.

    Args:
        experiment: the state; the round owns it while it lasts.
        now_ms: the one time of the round, ms since 1970.
        ids: source of new trial ids.
    """

    __slots__ = ("effects", "events", "experiment", "ids", "now_ms")

    def __init__(self, experiment: Experiment, now_ms: int, ids: TrialIds) -> None:
        self.experiment = experiment
        self.now_ms = now_ms
        self.ids = ids
        self.events: list[events.Event] = []
        self.effects: list[Effect] = []
        """To be carried out once the events are in the log."""

    def emit(self, event: events.Event) -> None:
        """State a fact."""
        self.effects.extend(effects_of(event, self.experiment))
        fold(self.experiment, event, self.now_ms)
        self.events.append(event)

    def add_effect(self, effect: Effect) -> None:
        """Have an effect that answers a word and follows from no new fact."""
        self.effects.append(effect)

    def change_state(self, state: ExperimentState, reason: str = "") -> None:
        """State that the experiment goes to ``state``."""
        experiment = self.experiment
        self.emit(
            events.ExperimentStateChanged(
                experiment.state,
                state,
                reason,
                experiment.execution_time_ms(self.now_ms),
            )
        )

    def end_trial(self, trial: Trial, state: TrialState, reason: str) -> None:
        """State that a trial is over by our own decision."""
        self.emit(
            events.TrialEnded(
                trial.id, trial.attempt, state, None, self.now_ms, reason, trial.report_sequence
            )
        )

    def cancel_trial(self, trial: Trial, state: TrialState, reason: str) -> None:
        """Have a live trial end in ``state``: at once if nothing of it can run, else by its agent.

        An UNKNOWN trial ends at once: should its agent come back, it is told to drop it.
        """
        if trial.state is not TrialState.RUNNING:
            self.end_trial(trial, state, reason)
        elif trial.asked_end is None:
            self.emit(events.TrialStopRequested(trial.id, state, reason))
