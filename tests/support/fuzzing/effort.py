"""Number of cases of a fuzzing test: few in every run, many in the benchmark of fuzzing."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, Phase, seed, settings

FACTOR: Final = float(os.environ.get("NNI_FUZZ_FACTOR", "1"))
"""Factor on the usual number of cases."""
SEED: Final = int(os.environ.get("NNI_FUZZ_SEED", "0"))
TALLY: Final = os.environ.get("NNI_FUZZ_TALLY", "")
"""File that gets one byte per tried case; empty: cases are not counted. Fewer cases than wanted
are tried where no more distinct ones exist."""
LONGEST_S: Final = 600 * max(1.0, FACTOR)
"""Time-out for all cases of one operation; the time-out of a call finds hanging calls first."""

_Test = TypeVar("_Test", bound=Callable[..., Any])


def cases(usual: int) -> Callable[[_Test], _Test]:
    """Decorate a `hypothesis.given` test with a fixed seed and ``usual`` cases in a usual run."""

    def decorate(test: _Test) -> _Test:
        limited = settings(
            max_examples=max(1, math.ceil(usual * FACTOR)),
            deadline=None,
            database=None,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        if TALLY:
            inner: Any = test
            # Hypothesis calls `inner_test` once per case; its documentation names this hook.
            inner.hypothesis.inner_test = _counted(inner.hypothesis.inner_test)
        return seed(SEED)(limited(test))

    return decorate


def _counted(test: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(test)
    def counted(*given: Any, **named: Any) -> Any:
        with Path(TALLY).open("ab") as tally:
            tally.write(b".")
        return test(*given, **named)

    return counted
