"""Messages of trials on their socket: JSON lines, one reply to each.

A request is one JSON object with `op`: `hello`, `parameters`, `report`, `checkpoint` or `next`.
NaN and the infinities are the bare tokens of Python's json. The whole protocol stands in
`docs/trial-protocol.md`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

LINE_LIMIT_BYTES: Final = 1_000_000 + 4_096
"""Longest request: a metric of 1,000,000 bytes and its envelope."""

STEP_LIMIT: Final = 2**53
"""Largest step of a checkpoint: JSON has no larger integer in other languages."""

REPLY_OK: Final = b'{"ok":true}\n'
REPLY_NO_NEXT: Final = b'{"ok":true,"next":null}\n'
"""There is no further trial for this process: it should end."""


class ChannelError(ValueError):
    """Error of a trial's request on the socket; its text is sent to the trial."""


class BrokenChannelError(ChannelError):
    """Error: broken protocol or unknown token; the connection is closed after the reply."""


@dataclass(frozen=True, slots=True)
class Hello:
    """First line of a trial on its socket: its secret token and process id."""

    token: str = field(repr=False)
    pid: int


@dataclass(frozen=True, slots=True)
class ParametersRequest:
    """Request of a trial on its socket for its parameters."""

    index: int = 0
    """Index of the set; a trial has one, and only old multi-phase scripts ask for more."""


@dataclass(frozen=True, slots=True)
class Report:
    """Metric that a trial reports on its socket: type, sequence, value and size."""

    final: bool
    sequence: int | None
    """Number given by the trial, per type; None: the agent counts."""
    value: Any
    size_bytes: int
    """Size of the whole line, to detect values that are too large for a message."""


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """Message of a trial on its socket: its checkpoint folder is complete."""

    step: int | None = None
    """None: one more than the last."""


@dataclass(frozen=True, slots=True)
class NextRequest:
    """Request of a process that has ended its trial with success for another trial."""


Request: TypeAlias = Hello | ParametersRequest | Report | CheckpointRequest | NextRequest

_FINAL_BY_TYPE: Final = {"PERIODICAL": False, "FINAL": True}


def parse_request(line: bytes) -> Request:
    """Parse a JSON line of a trial to its request; raise ChannelError if it is not one.

    Raises:
        BrokenChannelError: the line is no JSON object, so later lines cannot be trusted.
        ChannelError: the line is no request of this protocol.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BrokenChannelError(f"not a JSON line: {error}") from error
    if not isinstance(data, dict):
        raise BrokenChannelError("a request must be a JSON object")
    operation = data.get("op")
    if operation == "report":
        return _report(data, len(line))
    if operation == "parameters":
        index = data.get("parameter_index", 0)
        if type(index) is not int or index < 0:
            raise ChannelError(f"parameter_index must be a number >= 0, got {index!r:.40}")
        return ParametersRequest(index)
    if operation == "hello":
        token, pid = data.get("token"), data.get("pid", 0)
        if not isinstance(token, str) or not isinstance(pid, int):
            raise ChannelError("hello needs 'token' (text) and 'pid' (a number)")
        return Hello(token, pid)
    if operation == "checkpoint":
        return _checkpoint(data)
    if operation == "next":
        return NextRequest()
    raise ChannelError(
        f"op must be hello, parameters, report, checkpoint or next, got {operation!r:.40}"
    )


def _checkpoint(data: dict[str, Any]) -> CheckpointRequest:
    step = data.get("step")
    if step is not None and (type(step) is not int or abs(step) > STEP_LIMIT):
        raise ChannelError(f"step must be an integer between -2^53 and 2^53, got {step!r:.40}")
    return CheckpointRequest(step)


def _report(data: dict[str, Any], size_bytes: int) -> Report:
    kind = data.get("type")
    final = _FINAL_BY_TYPE.get(kind) if isinstance(kind, str) else None
    if final is None:
        raise ChannelError(f"type must be PERIODICAL or FINAL, got {kind!r:.40}")
    sequence = data.get("sequence")
    if sequence is not None and (type(sequence) is not int or sequence < 0):
        raise ChannelError(f"sequence must be a number >= 0, got {sequence!r:.40}")
    if "value" not in data:
        raise ChannelError("a report needs 'value'")
    return Report(final, sequence, data["value"], size_bytes)


def reply(**facts: object) -> bytes:
    """Return the JSON line of a successful reply, with these fields."""
    return json.dumps({"ok": True, **facts}).encode() + b"\n"


def next_trial_reply(directory: str, variables: Mapping[str, str], unset: Iterable[str]) -> bytes:
    """Return the JSON line that gives a waiting process its next trial.

    Args:
        directory: working directory of the trial.
        variables: of the trial alone.
        unset: variables of earlier trials of the process that this one does not have, sorted in
            the reply.
    """
    trial = {"cwd": directory, "environment": dict(variables), "unset": sorted(unset)}
    return reply(next=trial)


def refusal(text: str) -> bytes:
    """Return the JSON line that refuses a request, with the reason."""
    return json.dumps({"ok": False, "error": text}).encode() + b"\n"
