"""Polling of state outside this process, for which no event exists."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_STEP_S = 0.02
"""Polling interval: short beside any time-out, long beside the cost of a poll."""


def until(look: Callable[[], T], timeout_s: float, what: str = "") -> T:
    """Return the first true result of ``look``.

    Raises:
        TimeoutError: none came within ``timeout_s``; says ``what`` and the last result.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        result = look()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what or look}; last: {result!r}")
        time.sleep(_STEP_S)
