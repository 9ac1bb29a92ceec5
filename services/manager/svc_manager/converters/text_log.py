"""Facts as lines of `nnimanager.log`: what a person wants to read of them."""

from collections.abc import Callable
from typing import Any

from svc_manager.domain import events

Line = tuple[str, str, str]
"""Level, logger, text."""


def line_of(event: events.Event) -> Line | None:
    """Return the line that tells of a fact; None: it needs none."""
    make = _LINES.get(type(event))
    return None if make is None else make(event)


def _state(event: events.ExperimentStateChanged) -> Line:
    reason = f" ({event.reason})" if event.reason else ""
    level = "ERROR" if event.to_state.name == "ERROR" else "INFO"
    return level, "NNIManager", f"Experiment is {event.to_state.name}{reason}"


def _ended(event: events.TrialEnded) -> Line:
    reason = f": {event.reason}" if event.reason else ""
    level = "WARNING" if event.state.name == "FAILED" else "INFO"
    return level, "TrialDispatcher", f"Trial {event.trial_id} is {event.state.name}{reason}"


def _budget(event: events.BudgetChanged) -> Line:
    changed = {
        "trialConcurrency": event.trial_concurrency,
        "maxTrialNumber": event.max_trial_number,
        "maxExperimentDuration (ms)": event.max_duration_ms,
    }
    text = ", ".join(f"{name} = {value}" for name, value in changed.items() if value is not None)
    return "INFO", "NNIManager", f"Update: {text}"


# `Any`: each function takes the type of event that it stands beside.
_LINES: dict[type, Callable[[Any], Line]] = {
    events.ExperimentCreated: lambda x: (
        "INFO",
        "NNIManager",
        f"Experiment {x.experiment_id} created, NNI {x.nni_version}",
    ),
    events.ExperimentStateChanged: _state,
    events.AlgorithmStarted: lambda _: ("INFO", "Dispatcher", "The algorithm has started"),
    events.TrialsRequested: lambda x: (
        "DEBUG",
        "Dispatcher",
        f"Request {x.request_id}: {len(x.parameter_ids)} trials",
    ),
    events.TrialScheduled: lambda x: (
        "INFO",
        "TrialDispatcher",
        f"Trial {x.trial_id} submitted, sequence {x.sequence_id}, parameters {x.parameter_id}",
    ),
    events.TrialStarted: lambda x: (
        "INFO",
        "TrialDispatcher",
        f"Trial {x.trial_id} is RUNNING on {x.runner_id}, attempt {x.attempt}",
    ),
    events.MetricReported: lambda x: (
        "DEBUG",
        "TrialDispatcher",
        f"Trial {x.trial_id} reported {x.metric.type.name} {x.metric.sequence}",
    ),
    events.TrialStopRequested: lambda x: (
        "INFO",
        "TrialDispatcher",
        f"Trial {x.trial_id} is being stopped: {x.reason}",
    ),
    events.TrialLost: lambda x: (
        "WARNING",
        "TrialDispatcher",
        f"Attempt {x.attempt} of trial {x.trial_id} is lost and will be repeated: {x.reason}",
    ),
    events.TrialUnknown: lambda x: (
        "WARNING",
        "TrialDispatcher",
        f"Nothing is heard of trial {x.trial_id}",
    ),
    events.TrialWaits: lambda x: (
        "INFO",
        "TrialDispatcher",
        f"Trial {x.trial_id} waits: {x.reason}",
    ),
    events.TrialEnded: _ended,
    events.ReportIgnored: lambda x: (
        "WARNING",
        "TrialDispatcher",
        f"A report of trial {x.trial_id} was ignored: {x.reason}",
    ),
    events.AlgorithmFailed: lambda x: (
        "ERROR",
        "Dispatcher",
        f"{x.call} of the algorithm raised:\n{x.traceback.rstrip()}",
    ),
    events.AlgorithmDiverged: lambda x: (
        "WARNING",
        "Dispatcher",
        f"Not repeatable: the algorithm answered differently for parameters {x.parameter_id}",
    ),
    events.BudgetChanged: _budget,
    events.SearchSpaceChanged: lambda _: ("INFO", "NNIManager", "Update: searchSpace"),
    events.DataImported: lambda _: ("INFO", "NNIManager", "Data imported"),
    events.CustomTrialAdded: lambda x: (
        "INFO",
        "NNIManager",
        f"Customized trial added, parameters {x.parameter_id}",
    ),
    events.ListenerOpened: lambda x: ("INFO", "NNIManager", f"Listening on port {x.port}"),
    events.ListenerClosed: lambda _: ("INFO", "NNIManager", "The port is closed"),
    events.ExperimentMoved: lambda x: ("INFO", "NNIManager", f"The folder is {x.directory} now"),
}
