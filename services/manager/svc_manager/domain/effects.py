"""What is to be done outside because of a fact; each is safe to repeat."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from svc_manager.domain import events
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState


@dataclass(frozen=True, slots=True)
class PublishTask:
    """Put an attempt of a trial on the queue of its pool."""

    trial_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class PublishAgain:
    """Put an attempt that nobody has claimed on the queue anew, in place of its first task."""

    trial_id: str
    attempt: int
    boot_id: str
    """Of the agent that was restarted; once for each is enough."""


@dataclass(frozen=True, slots=True)
class WithdrawTask:
    """Take an attempt off the queue, if nobody has it yet."""

    trial_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class SendStop:
    """Tell an agent to stop a trial and to report its end."""

    runner_id: str
    trial_id: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class SendDrop:
    """Tell an agent to end an attempt without a report."""

    runner_id: str
    trial_id: str
    attempt: int
    claim_id: str


@dataclass(frozen=True, slots=True)
class OpenListener:
    """Serve the experiment on its own port."""

    port: int
    url_prefix: str


@dataclass(frozen=True, slots=True)
class CloseListener:
    """Give the port back."""


@dataclass(frozen=True, slots=True)
class ForgetExperiment:
    """Tell agents that no more trials of it will come."""


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """Keep what lists show of it, so that they need not fold its log."""


Effect: TypeAlias = (
    PublishTask
    | PublishAgain
    | WithdrawTask
    | SendStop
    | SendDrop
    | OpenListener
    | CloseListener
    | ForgetExperiment
    | WriteSummary
)


def effects_of(event: events.Event, before: Experiment) -> Iterator[Effect]:
    """Give what follows from ``event``.

    Args:
        event: a fact that is about to be folded.
        before: the state without it.
    """
    if isinstance(event, events.ExperimentStateChanged):
        yield WriteSummary()
    elif isinstance(event, events.TrialScheduled):
        yield PublishTask(event.trial_id, 1)
    elif isinstance(event, events.TrialLost):
        yield PublishTask(event.trial_id, event.attempt + 1)
    elif isinstance(event, events.TrialStopRequested):
        trial = before.trials[event.trial_id]
        yield SendStop(trial.runner_id, trial.id, trial.attempt, event.reason)
    elif isinstance(event, events.TrialEnded):
        yield from _of_end(event, before)
    elif isinstance(event, events.ListenerOpened):
        yield OpenListener(event.port, event.url_prefix)
    elif isinstance(event, events.ListenerClosed):
        yield CloseListener()
    elif isinstance(event, events.ExperimentEnded):
        yield ForgetExperiment()
        yield WriteSummary()


def _of_end(event: events.TrialEnded, before: Experiment) -> Iterator[Effect]:
    trial = before.trials[event.trial_id]
    if event.report_sequence != trial.report_sequence:
        return  # its agent said so, and has nothing left of it
    if trial.claim_id:
        yield SendDrop(trial.runner_id, trial.id, trial.attempt, trial.claim_id)
    else:
        yield WithdrawTask(trial.id, trial.attempt)


def outstanding_effects(experiment: Experiment) -> Iterator[Effect]:
    """Give what may not have been done when the last manager died, from the state alone.

    To be asked after the INBOX has been read to its end, since that tells which tasks were taken.
    """
    if experiment.port:
        yield OpenListener(experiment.port, experiment.url_prefix)
    if experiment.state in CLOSED_STATES or experiment.state is ExperimentState.ERROR:
        yield WriteSummary()
    for trial in experiment.live.values():
        if trial.state is TrialState.WAITING and not trial.claim_id:
            yield PublishTask(trial.id, trial.attempt)
        elif trial.asked_end is not None:
            yield SendStop(trial.runner_id, trial.id, trial.attempt, trial.stop_reason)
