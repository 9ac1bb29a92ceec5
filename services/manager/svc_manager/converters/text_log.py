"""Lines of `nnimanager.log`, one per event that a person wants to read."""

from collections.abc import Callable
from typing import Any

from svc_manager.domain import events

Line = tuple[str, str, str]
"""Level, logger, text."""


def line_of(event: events.Event) -> Line | None:
    """Return the log line of an event; None: it has none."""
    make = _LINES.get(type(event))
    return None if make is None else make(event)


def _state(event: events.ExperimentStateChanged) -> Line:
    reason = f" ({event.reason})" if event.reason else ""
    level = "ERROR" if event.new_state.name == "ERROR" else "INFO"
    return level, "NNIManager", f"Experiment is {event.new_state.name}{reason}"


def _ended(event: events.TrialEnded) -> Line:
    reason = f": {event.reason}" if event.reason else ""
    level = "WARNING" if event.state.name == "FAILED" else "INFO"
    return level, "TrialDispatcher", f"Trial {event.trial_id} is {event.state.name}{reason}"


def _budget(event: events.BudgetChanged) -> Line:
    changed = {
        "trialConcurrency": event.trial_concurrency,
        "maxTrialNumber": event.max_trial_number,
        "maxExperimentDuration (ms)": event.max_experiment_duration_ms,
    }
    text = ", ".join(f"{name} = {value}" for name, value in changed.items() if value is not None)
    return "INFO", "NNIManager", f"Update: {text}"


# `Any`: each function takes the type of its key.
_LINES: dict[type, Callable[[Any], Line]] = {
    events.ExperimentCreated: lambda event: (
        "INFO",
        "NNIManager",
        f"Experiment {event.experiment_id} created, NNI {event.nni_version}",
    ),
    events.ExperimentStateChanged: _state,
    events.AlgorithmStarted: lambda _: ("INFO", "Dispatcher", "The algorithm has started"),
    events.TrialsRequested: lambda event: (
        "DEBUG",
        "Dispatcher",
        f"Request {event.request_id}: {len(event.parameter_ids)} trials",
    ),
    events.TrialScheduled: lambda event: (
        "INFO",
        "TrialDispatcher",
        (
            f"Trial {event.trial_id} submitted, sequence {event.sequence_id}, "
            f"parameters {event.parameter_id}"
        ),
    ),
    events.TrialStarted: lambda event: (
        "INFO",
        "TrialDispatcher",
        f"Trial {event.trial_id} is RUNNING on {event.runner_id}, attempt {event.attempt}",
    ),
    events.MetricReported: lambda event: (
        "DEBUG",
        "TrialDispatcher",
        f"Trial {event.trial_id} reported {event.metric.type.name} {event.metric.sequence}",
    ),
    events.TrialStopRequested: lambda event: (
        "INFO",
        "TrialDispatcher",
        f"Trial {event.trial_id} is being stopped: {event.reason}",
    ),
    events.TrialLost: lambda event: (
        "WARNING",
        "TrialDispatcher",
        (
            f"Attempt {event.attempt} of trial {event.trial_id} is lost and will be repeated: "
            f"{event.reason}"
        ),
    ),
    events.TrialUnknown: lambda event: (
        "WARNING",
        "TrialDispatcher",
        f"The agent of trial {event.trial_id} is silent",
    ),
    events.TrialWaits: lambda event: (
        "INFO",
        "TrialDispatcher",
        f"Trial {event.trial_id} waits: {event.reason}",
    ),
    events.TrialEnded: _ended,
    events.ReportIgnored: lambda event: (
        "WARNING",
        "TrialDispatcher",
        f"A report of trial {event.trial_id} was ignored: {event.reason}",
    ),
    events.AlgorithmFailed: lambda event: (
        "ERROR",
        "Dispatcher",
        f"{event.call} of the algorithm raised:\n{event.traceback.rstrip()}",
    ),
    events.AlgorithmDiverged: lambda event: (
        "WARNING",
        "Dispatcher",
        f"Not repeatable: the algorithm answered differently for parameters {event.parameter_id}",
    ),
    events.BudgetChanged: _budget,
    events.SearchSpaceChanged: lambda _: ("INFO", "NNIManager", "Update: searchSpace"),
    events.DataImported: lambda _: ("INFO", "NNIManager", "Data imported"),
    events.CustomTrialAdded: lambda event: (
        "INFO",
        "NNIManager",
        f"Customized trial added, parameters {event.parameter_id}",
    ),
    events.ListenerOpened: lambda event: ("INFO", "NNIManager", f"Listening on port {event.port}"),
    events.ListenerClosed: lambda _: ("INFO", "NNIManager", "The port is closed"),
    events.ExperimentMoved: lambda event: (
        "INFO",
        "NNIManager",
        f"The folder is {event.directory} now",
    ),
}
