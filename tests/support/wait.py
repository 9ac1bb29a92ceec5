"""Polling of state outside this process, for which no event exists."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_STEP_S = 0.02
"""Shortest polling interval: short beside any time-out."""
_LONGEST_STEP_S = 0.5


def until(look: Callable[[], T], timeout_s: float, what: str = "") -> T:
    """Return the first true result of ``look``.

    Raises:
        TimeoutError: none came within ``timeout_s``; says ``what`` and the last result.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        began = time.monotonic()
        result = look()
        if result:
            return result
        ended = time.monotonic()
        if ended > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what or look}; last: {result!r}")
        # A look that starts a process must not slow what it waits for.
        time.sleep(min(max(_STEP_S, ended - began), _LONGEST_STEP_S))
