"""Ids of the trace of a trial: they follow from what the trial is, so nobody has to tell them.

Every service that works on a trial knows its experiment and its parameter id, from the request for
parameters on; so all of them, and whoever takes over after a crash, write into the same trace.
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
    """A place in a trace, as the W3C trace context writes it."""

    trace_id: int
    span_id: int
    sampled: bool

    def text(self) -> str:
        """Return it as the header `traceparent` has it."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


def parse_traceparent(text: str) -> TraceParent | None:
    """Return what `TraceParent.text` wrote; None: it is nothing of the kind."""
    match = _TRACEPARENT.match(text)
    if match is None:
        return None
    flags = int(match[3], 16)
    return TraceParent(int(match[1], 16), int(match[2], 16), bool(flags & _SAMPLED))


def trial_trace_id(experiment_id: str, parameter_id: int) -> int:
    """Return the id of the trace of the trial with these parameters."""
    return _number(_TRACE_BYTES, experiment_id, parameter_id, "trace")


def span_id(experiment_id: str, parameter_id: int, *path: str | int) -> int:
    """Return the id of a span of that trace.

    Args:
        experiment_id: whose trial.
        parameter_id: of its parameters.
        path: what the span is, e.g. `"attempt", 2, "run"`; empty: the trial as a whole.
    """
    return _number(_SPAN_BYTES, experiment_id, parameter_id, "span", *path)


def trace_text(experiment_id: str, parameter_id: int) -> str:
    """Return the id of a trial's trace as logs and pages show it."""
    return f"{trial_trace_id(experiment_id, parameter_id):032x}"


def _number(size: int, *path: str | int) -> int:
    text = "/".join(str(part) for part in path)
    # Never 0, which means that there is no id; nothing here is a secret.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size], "big") or 1
