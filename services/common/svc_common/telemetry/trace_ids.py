"""Deterministic trace and span ids of trials, derived from experiment id and parameter id.

Every service that works on a trial knows these two, from the request for parameters on. So all
services, restarted ones included, write to the same trace without passing ids on.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8
_TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})\Z")
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class TraceParent:
    """Trace id, span id and sampling flag of a W3C `traceparent`."""

    trace_id: int
    span_id: int
    sampled: bool

    def text(self) -> str:
        """Return the value of the header `traceparent`."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


def parse_traceparent(text: str) -> TraceParent | None:
    """Parse a W3C `traceparent` header to its ids and flag; None: it is malformed."""
    match = _TRACEPARENT.match(text)
    if match is None:
        return None
    flags = int(match[3], 16)
    return TraceParent(int(match[1], 16), int(match[2], 16), bool(flags & _SAMPLED))


def trial_trace_id(experiment_id: str, parameter_id: int) -> int:
    """Return a trial's trace id, hashed from the ids of its experiment and its parameters."""
    return _number(_TRACE_BYTES, experiment_id, parameter_id, "trace")


def span_id(experiment_id: str, parameter_id: int, *path: str | int) -> int:
    """Return a trial span's id, hashed from experiment, parameters and the span's path.

    Args:
        experiment_id: experiment of the trial.
        parameter_id: id of its parameters.
        path: name of the span, e.g. `"attempt", 2, "run"`; empty: the whole trial.
    """
    return _number(_SPAN_BYTES, experiment_id, parameter_id, "span", *path)


def trace_text(experiment_id: str, parameter_id: int) -> str:
    """Return the trace id of a trial in the hexadecimal form of logs and pages."""
    return f"{trial_trace_id(experiment_id, parameter_id):032x}"


def _number(size: int, *path: str | int) -> int:
    text = "/".join(str(part) for part in path)
    # Never 0, which means no id. The hash protects no secret.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size], "big") or 1
