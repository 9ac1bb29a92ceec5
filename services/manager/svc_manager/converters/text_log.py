"""Lines of `nnimanager.log`, one per event that a person wants to read."""

from collections.abc import Mapping

from svc_common.experiment_events.cause_text import (
    end_text,
    experiment_text,
    ignore_text,
    loss_text,
    stop_text,
    wait_text,
)
from svc_manager.domain import events
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.trial import TrialState

Line = tuple[str, str, str]
"""Level, logger, text."""


def line_of(event: events.Event) -> Line | None:
    """Return (level, logger, text) for an event's line in the text log; None: it has none."""
    if isinstance(event, events.TrialEvent):
        line = _trial_line(event)
        return None if line is None else (line[0], "TrialDispatcher", line[1])
    return _algorithm_line(event) or _experiment_line(event)


def _trial_line(event: events.TrialEvent) -> tuple[str, str] | None:  # noqa: C901 - one case per event
    if isinstance(event, events.ReportDeferred):
        return None
    trial = f"Trial {event.trial_id}"
    match event:
        case events.TrialScheduled():
            text = f"submitted, sequence {event.sequence_id}, parameters {event.parameter_id}"
            return "INFO", f"{trial} {text}"
        case events.TrialStarted():
            return "INFO", f"{trial} is RUNNING on {event.runner_id}, attempt {event.attempt}"
        case events.MetricReported(metric=metric):
            return "DEBUG", f"{trial} reported {metric.type.name} {metric.sequence}"
        case events.TrialStopRequested():
            return "INFO", f"{trial} is being stopped: {stop_text(event.stop)}"
        case events.TrialLost():
            attempt = f"Attempt {event.attempt} of trial {event.trial_id}"
            return "WARNING", f"{attempt} is lost and will be repeated: {loss_text(event.loss)}"
        case events.TrialRequeued():
            return "INFO", f"{trial} is started again, attempt {event.attempt}"
        case events.TrialUnknown():
            return "WARNING", f"The agent of trial {event.trial_id} is silent"
        case events.TrialWaits():
            return "INFO", f"{trial} waits: {wait_text(event.wait)}"
        case events.TrialCheckpointed(checkpoint=saved):
            return "DEBUG", f"{trial} saved a checkpoint of step {saved.step}"
        case events.TrialEnded():
            level = "WARNING" if event.state is TrialState.FAILED else "INFO"
            return level, f"{trial} is {event.state.name}" + _after(": ", end_text(event.end))
        case events.ReportIgnored():
            text = ignore_text(event.cause)
            return "WARNING", f"A report of trial {event.trial_id} was ignored: {text}"


def _algorithm_line(event: events.Event) -> Line | None:
    match event:
        case events.AlgorithmStarted():
            return "INFO", "Dispatcher", "The algorithm has started"
        case events.TrialsRequested(request_id=request_id, parameter_ids=ids):
            return "DEBUG", "Dispatcher", f"Request {request_id}: {len(ids)} trials"
        case events.AlgorithmFailed():
            text = f"{event.call} of the algorithm raised:\n{event.traceback.rstrip()}"
            return "ERROR", "Dispatcher", text
        case events.AlgorithmDiverged(parameter_id=parameter_id):
            text = f"the algorithm answered differently for parameters {parameter_id}"
            return "WARNING", "Dispatcher", f"Not repeatable: {text}"
        case events.AlgorithmWaits(reason=reason):
            return "WARNING", "Dispatcher", f"The algorithm waits: {reason}"
        case _:
            return None


def _experiment_line(event: events.Event) -> Line | None:
    if isinstance(event, events.ExperimentStateChanged):
        text = experiment_text(event.cause)
        level = "ERROR" if event.new_state is ExperimentState.ERROR else "INFO"
        reason = f" ({text})" if text else ""
        return level, "NNIManager", f"Experiment is {event.new_state.name}{reason}"
    text = _experiment_text(event)
    return ("INFO", "NNIManager", text) if text else None


def _experiment_text(event: events.Event) -> str:  # noqa: C901 - one case per event
    match event:
        case events.ExperimentCreated():
            return f"Experiment {event.experiment_id} created, NNI {event.nni_version}"
        case events.BudgetChanged():
            return f"Update: {_budget_text(event)}"
        case events.AgentLimitsChanged(limits=limits):
            return f"Update: {_limits_text(limits)}"
        case events.SearchSpaceChanged():
            return "Update: searchSpace"
        case events.AlgorithmRequested(tuner=tuner) if tuner is not None:
            return "Update: tuner"
        case events.DataImported():
            return "Data imported"
        case events.CustomTrialAdded(parameter_id=parameter_id):
            return f"Customized trial added, parameters {parameter_id}"
        case events.ListenerOpened(port=port):
            return f"Listening on port {port}"
        case events.ListenerClosed():
            return "The port is closed"
        case events.ExperimentMoved(directory=directory):
            return f"The folder is {directory} now"
        case events.RemarksChanged(trial_id=trial_id):
            return f"Remarks on {f'trial {trial_id}' if trial_id else 'the experiment'} changed"
        case _:
            return ""


def _budget_text(event: events.BudgetChanged) -> str:
    changed = {
        "trialConcurrency": event.trial_concurrency,
        "maxTrialNumber": event.max_trial_number,
        "maxExperimentDuration (ms)": event.max_experiment_duration_ms,
    }
    return _changes_text(changed)


def _limits_text(limits: AgentLimits) -> str:
    changed = {
        "minAgents": limits.min_agents,
        "maxAgents": limits.max_agents,
        "idleTime (ms)": limits.idle_time_ms,
        "maxAgentTime (ms)": limits.max_agent_time_ms,
        "maxCost": limits.max_cost,
        "costPerAgentHour": limits.cost_per_agent_hour,
    }
    texts = [_changes_text(changed), *(f"{name} removed" for name in limits.removed)]
    return ", ".join(filter(None, texts))


def _changes_text(changed: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in changed.items() if value is not None)


def _after(separator: str, text: str) -> str:
    return f"{separator}{text}" if text else ""
