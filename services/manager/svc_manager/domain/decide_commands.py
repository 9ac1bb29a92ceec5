"""Decisions on users' commands; a refused command raises an error and changes nothing."""

from svc_common.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    ExperimentCause,
    ExperimentReason,
    StopCause,
    StopReason,
)
from svc_manager.domain import events, inputs
from svc_manager.domain.agent_limits import (
    check_agent_limits,
    check_has_own_agents,
    check_removed,
)
from svc_manager.domain.budget import trials_left
from svc_manager.domain.decide_callers import ask_trial, tell_trial
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.remarks import Remarks
from svc_manager.domain.trial import TrialState

_CONCURRENCY_LIMIT = 99_999


def decide_command(  # noqa: C901, PLR0912 - one case per command
    round_: Round, command: inputs.Command
) -> None:
    """Emit the events of a user's command (create, resume, stop, …), or raise if it is refused.

    Raises:
        ServiceError: the command is refused.
    """
    match command:
        case inputs.Create():
            _create(round_, command)
        case inputs.Resume():
            _resume(round_, command)
        case inputs.View():
            _view(round_, command)
        case inputs.Stop():
            _stop(round_, command)
        case inputs.Update():
            _update(round_, command)
        case inputs.ChangeTuner():
            _change_tuner(round_, command)
        case inputs.ChangeAgentLimits():
            _change_agent_limits(round_, command)
        case inputs.KillTrial():
            _kill(round_, command)
        case inputs.AddTrial():
            _add(round_, command)
        case inputs.ImportData():
            _import(round_, command)
        case inputs.ChangeRemarks():
            _remark(round_, command)
        case inputs.AskTrial():
            ask_trial(round_, command)
        case inputs.TellTrial():
            tell_trial(round_, command)


def _create(round_: Round, command: inputs.Create) -> None:
    round_.emit(command.created)
    created = command.created
    service = created.settings.algorithm_service
    round_.emit(events.AlgorithmRequested(1, created.directory, service))
    cause = ExperimentReason(ExperimentCause.CREATED)
    round_.emit(events.ExperimentStateChanged(None, ExperimentState.INITIALIZED, cause, 0))
    if command.port:
        round_.emit(events.ListenerOpened(command.port, command.url_prefix))


def _move(round_: Round, directory: str) -> None:
    if directory and directory != round_.experiment.directory:
        round_.emit(events.ExperimentMoved(directory))


def _resume(round_: Round, command: inputs.Resume) -> None:
    _check_closed(round_, "resumed")
    experiment = round_.experiment
    abandon(round_)
    _move(round_, command.directory)
    if experiment.port:
        round_.emit(events.ListenerClosed())
    generation = experiment.algorithm.generation + 1
    service = experiment.settings.algorithm_service
    round_.emit(events.AlgorithmRequested(generation, experiment.directory, service))
    round_.change_state(ExperimentState.INITIALIZED, ExperimentCause.RESUMED)
    if command.port:
        round_.emit(
            events.ListenerOpened(command.port, command.url_prefix or experiment.url_prefix)
        )


def _view(round_: Round, command: inputs.View) -> None:
    _check_closed(round_, "viewed")
    experiment = round_.experiment
    _move(round_, command.directory)
    if experiment.port:
        round_.emit(events.ListenerClosed())
    if experiment.state is not ExperimentState.VIEWED:
        round_.change_state(ExperimentState.VIEWED, ExperimentCause.OPENED_FOR_READING)
    if command.port:
        round_.emit(
            events.ListenerOpened(command.port, command.url_prefix or experiment.url_prefix)
        )


def _check_closed(round_: Round, verb: str) -> None:
    experiment = round_.experiment
    if experiment.state not in CLOSED_STATES:
        raise FailedPreconditionError(
            f"experiment {experiment.id!r} is {experiment.state.name}: only a stopped experiment "
            f"can be {verb}; stop it first",
            {"state": experiment.state.name},
        )


def abandon(round_: Round) -> None:
    """End all live trials now as FAILED with cause CUT_OFF; the experiment keeps its state."""
    for trial in list(round_.experiment.live.values()):
        round_.end_trial(trial, TrialState.FAILED, EndReason(EndCause.CUT_OFF))


def cut_off(round_: Round) -> None:
    """Emit the events that stop a copied experiment: trials abandoned, listener closed, STOPPED."""
    experiment = round_.experiment
    if experiment.state is ExperimentState.STOPPED:
        return
    abandon(round_)
    if experiment.port:
        round_.emit(events.ListenerClosed())
    if experiment.state not in {ExperimentState.VIEWED, ExperimentState.STOPPING}:
        round_.change_state(ExperimentState.STOPPING, ExperimentCause.LOG_COPIED)
    round_.change_state(ExperimentState.STOPPED)
    round_.end_experiment(ExperimentState.STOPPED, ExperimentCause.LOG_COPIED)


def _stop(round_: Round, command: inputs.Stop) -> None:
    experiment = round_.experiment
    if experiment.state in {ExperimentState.STOPPED, ExperimentState.STOPPING}:
        return
    if experiment.state is ExperimentState.VIEWED:
        if experiment.port:
            round_.emit(events.ListenerClosed())
        round_.change_state(ExperimentState.STOPPED)
        round_.end_experiment(ExperimentState.STOPPED, command.cause)
        return
    round_.change_state(ExperimentState.STOPPING, command.cause)
    stop = StopReason(StopCause.EXPERIMENT_STOPPED)
    for trial in list(experiment.live.values()):
        round_.cancel_trial(trial, TrialState.SYS_CANCELED, stop)


def _check_open(round_: Round) -> None:
    experiment = round_.experiment
    if experiment.state in CLOSED_STATES or experiment.state is ExperimentState.STOPPING:
        raise FailedPreconditionError(
            f"experiment {experiment.id!r} is {experiment.state.name} and cannot be changed; "
            "resume it first",
            {"state": experiment.state.name},
        )


def _update(round_: Round, command: inputs.Update) -> None:
    _check_open(round_)
    concurrency = command.trial_concurrency
    least = round_.experiment.settings.least_concurrency
    if concurrency is not None and not least <= concurrency <= _CONCURRENCY_LIMIT:
        raise InvalidArgumentError(
            "trial_concurrency", f"must be {least} to {_CONCURRENCY_LIMIT}", concurrency
        )
    if command.max_trial_number is not None and command.max_trial_number < 1:
        raise InvalidArgumentError("max_trial_number", "must be >= 1", command.max_trial_number)
    if command.max_duration_ms is not None and command.max_duration_ms <= 0:
        raise InvalidArgumentError(
            "max_experiment_duration", "must be positive", f"{command.max_duration_ms} ms"
        )
    budget = (concurrency, command.max_trial_number, command.max_duration_ms)
    if budget != (None, None, None):
        round_.emit(events.BudgetChanged(*budget))
    if command.search_space is not None:
        round_.emit(events.SearchSpaceChanged(command.search_space))


def _change_tuner(round_: Round, command: inputs.ChangeTuner) -> None:
    _check_open(round_)
    experiment = round_.experiment
    if experiment.state is ExperimentState.ERROR:
        raise FailedPreconditionError(
            f"experiment {experiment.id!r} is ERROR: only a running one can be handed over to "
            "another tuner; create one with warmStartFrom, which learns its results",
            {"state": experiment.state.name},
        )
    generation = experiment.algorithm.generation + 1
    round_.emit(events.AlgorithmRequested(generation, experiment.directory, tuner=command.tuner))


def _change_agent_limits(round_: Round, command: inputs.ChangeAgentLimits) -> None:
    _check_open(round_)
    experiment = round_.experiment
    check_has_own_agents(experiment.settings.pool)
    check_removed(command.limits)
    old = experiment.budget.agents
    new = old.changed(command.limits)
    check_agent_limits(new)
    if new != old:
        round_.emit(events.AgentLimitsChanged(command.limits))


def _kill(round_: Round, command: inputs.KillTrial) -> None:
    experiment = round_.experiment
    trial = experiment.trials.get(command.trial_id)
    if trial is None:
        raise NotFoundError("trial", command.trial_id)
    if not trial.live:
        raise FailedPreconditionError(
            f"trial {trial.id!r} is over: it is {trial.state.name}", {"state": trial.state.name}
        )
    round_.cancel_trial(trial, TrialState.USER_CANCELED, StopReason(StopCause.USER))


def _add(round_: Round, command: inputs.AddTrial) -> None:
    experiment = round_.experiment
    accepting = {ExperimentState.RUNNING, ExperimentState.TUNER_NO_MORE_TRIAL}
    if experiment.settings.has_callers:
        # A trial is made when a caller asks for it.
        accepting |= {ExperimentState.INITIALIZED, ExperimentState.DONE}
    if experiment.state not in accepting:
        raise FailedPreconditionError(
            f"experiment {experiment.id!r} is {experiment.state.name}: trials can be added only "
            "while it is RUNNING or TUNER_NO_MORE_TRIAL",
            {"state": experiment.state.name},
        )
    left = trials_left(experiment)
    if left is not None and left <= len(experiment.custom_queue):
        raise FailedPreconditionError(
            f"experiment {experiment.id!r} has no trial left; raise max_trial_number first"
        )
    round_.emit(
        events.CustomTrialAdded(
            command.request_id, experiment.next_parameter_id, command.parameters
        )
    )


def _import(round_: Round, command: inputs.ImportData) -> None:
    _check_open(round_)
    round_.emit(events.DataImported(command.import_id, command.data))


def _remark(round_: Round, command: inputs.ChangeRemarks) -> None:
    experiment = round_.experiment
    if experiment.state is ExperimentState.VIEWED:
        raise FailedPreconditionError(
            f"experiment {experiment.id!r} is open for reading only; stop it to close it, then "
            "change its remarks",
            {"state": experiment.state.name},
        )
    if command.trial_id and command.trial_id not in experiment.trials:
        raise NotFoundError("trial", command.trial_id)
    old = experiment.remarks.get(command.trial_id, Remarks())
    new = old.changed(note=command.note, tags=command.tags, starred=command.starred)
    if new != old:
        round_.emit(events.RemarksChanged(command.trial_id, new.note, new.tags, new.starred))
