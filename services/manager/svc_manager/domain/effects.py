"""Effects of events outside the experiment's state; each is safe to repeat."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from svc_common.experiment_events.causes import LossCause, LossReason, StopReason
from svc_manager.domain import events
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState


@dataclass(frozen=True, slots=True)
class PublishTask:
    """Effect: publish the task of a trial's attempt to the queue of its pool."""

    trial_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class PublishAgain:
    """Effect: publish an unclaimed attempt again after its agent restarted."""

    trial_id: str
    attempt: int
    boot_id: str
    """Of the restarted agent; one publication for each restart is enough."""


@dataclass(frozen=True, slots=True)
class WithdrawTask:
    """Effect: delete the task of an unclaimed attempt from its pool's queue."""

    trial_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class SendStop:
    """Effect: order an agent to stop a trial and to report its end."""

    runner_id: str
    trial_id: str
    attempt: int
    stop: StopReason


@dataclass(frozen=True, slots=True)
class SendDrop:
    """Effect: order an agent to end an attempt without a report."""

    runner_id: str
    trial_id: str
    attempt: int
    claim_id: str


@dataclass(frozen=True, slots=True)
class OpenListener:
    """Effect: serve the experiment's page and REST API on its own port."""

    port: int
    url_prefix: str


@dataclass(frozen=True, slots=True)
class CloseListener:
    """Effect: close the experiment's own port."""


@dataclass(frozen=True, slots=True)
class ForgetExperiment:
    """Effect: notify agents that the experiment publishes no more tasks."""


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """Effect: write the experiment's summary, so that lists need not fold its log."""


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


_WITHOUT_EFFECTS: Final = frozenset(
    {
        events.MetricReported,
        events.ParametersGenerated,
        events.TrialsRequested,
        events.TrialStarted,
    }
)
"""The most frequent events, four of the six of a trial with one result."""


def effects_of(event: events.Event, before: Experiment) -> Iterable[Effect]:
    """Return the effects that follow from an event: tasks to publish, orders to agents, ports.

    Args:
        event: the event, which is not folded yet.
        before: the state before the event.
    """
    return () if type(event) in _WITHOUT_EFFECTS else _effects_of(event, before)


def _effects_of(  # noqa: C901 - one case per event
    event: events.Event, before: Experiment
) -> Iterator[Effect]:
    if before.settings.has_callers and isinstance(event, events.TrialEvent):
        return  # no agent runs its trials
    match event:
        case events.TrialScheduled(trial_id=trial_id):
            yield PublishTask(trial_id, 1)
        case events.TrialEnded():
            yield from _effects_of_end(event, before)
        case events.TrialLost(trial_id=trial_id, attempt=attempt, loss=loss):
            yield from _effects_of_loss(trial_id, attempt, loss)
        case events.TrialRequeued(trial_id=trial_id, attempt=attempt):
            yield PublishTask(trial_id, attempt)
        case events.TrialStopRequested(trial_id=trial_id, stop=stop):
            trial = before.trials[trial_id]
            yield SendStop(trial.runner_id, trial.id, trial.attempt, stop)
        case events.ExperimentStateChanged() | events.RemarksChanged():
            yield WriteSummary()
        case events.ListenerOpened(port=port, url_prefix=url_prefix):
            yield OpenListener(port, url_prefix)
        case events.ListenerClosed():
            yield CloseListener()
        case events.ExperimentEnded():
            if not before.settings.has_callers:
                yield ForgetExperiment()
            yield WriteSummary()
        case _:
            pass


def _effects_of_loss(trial_id: str, attempt: int, loss: LossReason) -> Iterator[Effect]:
    if loss.cause is not LossCause.NOT_STARTED:  # that one is published after a back-off
        yield PublishTask(trial_id, attempt + 1)


def _effects_of_end(event: events.TrialEnded, before: Experiment) -> Iterator[Effect]:
    trial = before.trials[event.trial_id]
    if event.report_sequence != trial.report_sequence:
        return  # reported by its agent, which holds nothing of it any more
    if trial.claim_id:
        yield SendDrop(trial.runner_id, trial.id, trial.attempt, trial.claim_id)
    elif trial.id not in before.backing_off:
        yield WithdrawTask(trial.id, trial.attempt)


def outstanding_effects(experiment: Experiment) -> Iterator[Effect]:
    """Yield the effects to repeat after a restart, from the state alone: tasks, orders, port.

    To be called after the INBOX is read to its end, since its messages tell which tasks are
    claimed.
    """
    if experiment.port:
        yield OpenListener(experiment.port, experiment.url_prefix)
    if experiment.state in CLOSED_STATES or experiment.state is ExperimentState.ERROR:
        yield WriteSummary()
    if experiment.settings.has_callers:
        return
    for trial in experiment.live.values():
        if trial.id in experiment.backing_off:
            continue
        if trial.state is TrialState.WAITING and not trial.claim_id:
            yield PublishTask(trial.id, trial.attempt)
        elif trial.stop is not None:
            yield SendStop(trial.runner_id, trial.id, trial.attempt, trial.stop)
