"""Commands between an advisor and its host, and the port through which an advisor sends them.

One process hosts one algorithm, so the port is set once per process with `connect`.
"""

import json
from enum import Enum
from typing import Protocol

from nni.hpo.json_value import JsonValue


class CommandType(Enum):
    """Kinds of commands between an advisor and its host.

    The values name the handler that receives a command, or the effect of one that an advisor sends.

    Examples:
        >>> from nni.hpo import CommandType
        >>> CommandType.NewTrialJob.value
        'new_trial_job'
    """

    # to the algorithm
    Initialize = "initialize"
    """First search space; the advisor replies `Initialized`."""
    RequestTrialJobs = "request_trial_jobs"
    """Number of trials that can start."""
    UpdateSearchSpace = "update_search_space"
    """Search space that replaces the present one."""
    ImportData = "import_data"
    """Samples that a user imports or a resume replays."""
    AddCustomizedTrialJob = "add_customized_trial"
    """Trial that the user added by hand."""
    ReportMetricData = "report_metric_data"
    """Metric of a trial."""
    TrialEnd = "trial_end"
    """End of a trial, with its final status."""
    Ping = "ping"
    """Check of the connection; no reply is needed."""
    Terminate = "terminate"
    """Request to end after the commands before it."""
    # from the algorithm
    Initialized = "initialized"
    """Reply to `Initialize`; empty content."""
    NewTrialJob = "new_trial_job"
    """Configuration of a new trial."""
    SendTrialJobParameter = "send_trial_job_parameter"
    """Further configuration of a running trial of a multi-phase experiment."""
    NoMoreTrialJobs = "no_more_trial_jobs"
    """Notice that no further trial will follow."""
    KillTrialJob = "kill_trial_job"
    """Request to stop a trial early."""


class MetricType:
    """Kinds of metrics that an advisor receives in `handle_report_metric_data`.

    Examples:
        >>> from nni.hpo import MetricType
        >>> {"type": "FINAL", "value": 0.9}["type"] == MetricType.FINAL
        True
    """

    PERIODICAL = "PERIODICAL"
    FINAL = "FINAL"
    REQUEST_PARAMETER = "REQUEST_PARAMETER"


class CommandPort(Protocol):
    """Receiver of the commands that an advisor sends."""

    def deliver(self, command: CommandType, data: JsonValue) -> None:
        """Receive a command that the advisor sends, with its data.

        Called from the thread in which the advisor sends, possibly one of several.

        Args:
            command: a kind that an advisor sends.
            data: decoded from JSON. `NewTrialJob`: dict with `parameter_id`, `parameters` and
                perhaps `parameter_source`; `KillTrialJob`: trial id; else as the sender gave it.
        """


_port: CommandPort | None = None


def connect(port: CommandPort | None) -> None:
    """Set the port that receives all further commands; None disconnects."""
    global _port  # noqa: PLW0603 - the documented `send` is a function of a module
    _port = port


def send(command: CommandType, data: JsonValue) -> None:
    """Send a command, with JSON text parsed, to the host; raise RuntimeError without one.

    Args:
        command: its kind.
        data: JSON text, as the documented interface has it, or the value itself.

    Raises:
        RuntimeError: no host is connected.
        ValueError: `NewTrialJob` without `parameter_id` or `parameters`.
    """
    if _port is None:
        raise RuntimeError(
            f"cannot send {command.name}: no host is connected; run the advisor in an experiment "
            "or call nni.hpo.commands.connect first"
        )
    value = _decoded(command, data)
    if command in {CommandType.NewTrialJob, CommandType.SendTrialJobParameter} and not (
        isinstance(value, dict) and {"parameter_id", "parameters"} <= value.keys()
    ):
        raise ValueError(
            f"{command.name} needs a dict with 'parameter_id' and 'parameters', got {value!r:.200}"
        )
    _port.deliver(command, value)


def _decoded(command: CommandType, data: JsonValue) -> JsonValue:
    if not isinstance(data, str) or not data:
        return data
    try:
        return json.loads(data)
    except ValueError:
        if command is CommandType.KillTrialJob:
            return data  # a bare trial id is not always JSON
        raise
