"""Facts as lines of `nnimanager.log`: what a person wants to read of them."""

from collections.abc import Callable
from typing import Any

from svc_manager.domain import events as e

Line = tuple[str, str, str]
"""Level, logger, text."""


def line_of(event: e.Event) -> Line | None:
    """Return the line that tells of a fact; None: it needs none."""
    make = _LINES.get(type(event))
    return None if make is None else make(event)


def _state(event: e.ExperimentStateChanged) -> Line:
    reason = f" ({event.reason})" if event.reason else ""
    level = "ERROR" if event.to_state.name == "ERROR" else "INFO"
    return level, "NNIManager", f"Experiment is {event.to_state.name}{reason}"


def _ended(event: e.TrialEnded) -> Line:
    reason = f": {event.reason}" if event.reason else ""
    level = "WARNING" if event.state.name == "FAILED" else "INFO"
    return level, "TrialDispatcher", f"Trial {event.trial_id} is {event.state.name}{reason}"


def _budget(event: e.BudgetChanged) -> Line:
    changed = {
        "trialConcurrency": event.trial_concurrency,
        "maxTrialNumber": event.max_trial_number,
        "maxExperimentDuration (ms)": event.max_duration_ms,
    }
    text = ", ".join(f"{name} = {value}" for name, value in changed.items() if value is not None)
    return "INFO", "NNIManager", f"Update: {text}"


# `Any`: each function takes the type of event that it stands beside.
_LINES: dict[type, Callable[[Any], Line]] = {
    e.ExperimentCreated: lambda x: (
        "INFO",
        "NNIManager",
        f"Experiment {x.experiment_id} created, NNI {x.nni_version}",
    ),
    e.ExperimentStateChanged: _state,
    e.AlgorithmStarted: lambda _: ("INFO", "Dispatcher", "The algorithm has started"),
    e.TrialsRequested: lambda x: (
        "DEBUG",
        "Dispatcher",
        f"Request {x.request_id}: {len(x.parameter_ids)} trials",
    ),
    e.TrialScheduled: lambda x: (
        "INFO",
        "TrialDispatcher",
        f"Trial {x.trial_id} submitted, sequence {x.sequence_id}, parameters {x.parameter_id}",
    ),
    e.TrialStarted: lambda x: (
        "INFO",
        "TrialDispatcher",
        f"Trial {x.trial_id} is RUNNING on {x.runner_id}, attempt {x.attempt}",
    ),
    e.MetricReported: lambda x: (
        "DEBUG",
        "TrialDispatcher",
        f"Trial {x.trial_id} reported {x.metric.type.name} {x.metric.sequence}",
    ),
    e.TrialStopRequested: lambda x: (
        "INFO",
        "TrialDispatcher",
        f"Trial {x.trial_id} is being stopped: {x.reason}",
    ),
    e.TrialLost: lambda x: (
        "WARNING",
        "TrialDispatcher",
        f"Attempt {x.attempt} of trial {x.trial_id} is lost and will be repeated: {x.reason}",
    ),
    e.TrialUnknown: lambda x: (
        "WARNING",
        "TrialDispatcher",
        f"Nothing is heard of trial {x.trial_id}",
    ),
    e.TrialWaits: lambda x: ("INFO", "TrialDispatcher", f"Trial {x.trial_id} waits: {x.reason}"),
    e.TrialEnded: _ended,
    e.ReportIgnored: lambda x: (
        "WARNING",
        "TrialDispatcher",
        f"A report of trial {x.trial_id} was ignored: {x.reason}",
    ),
    e.AlgorithmFailed: lambda x: (
        "ERROR",
        "Dispatcher",
        f"{x.call} of the algorithm raised:\n{x.traceback.rstrip()}",
    ),
    e.AlgorithmDiverged: lambda x: (
        "WARNING",
        "Dispatcher",
        f"Not repeatable: the algorithm answered differently for parameters {x.parameter_id}",
    ),
    e.BudgetChanged: _budget,
    e.SearchSpaceChanged: lambda _: ("INFO", "NNIManager", "Update: searchSpace"),
    e.DataImported: lambda _: ("INFO", "NNIManager", "Data imported"),
    e.CustomTrialAdded: lambda x: (
        "INFO",
        "NNIManager",
        f"Customized trial added, parameters {x.parameter_id}",
    ),
    e.ListenerOpened: lambda x: ("INFO", "NNIManager", f"Listening on port {x.port}"),
    e.ListenerClosed: lambda _: ("INFO", "NNIManager", "The port is closed"),
    e.ExperimentMoved: lambda x: ("INFO", "NNIManager", f"The folder is {x.directory} now"),
}
