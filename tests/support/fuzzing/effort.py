"""How many cases a fuzzing test tries: few in every run, many in the benchmark of fuzzing."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, Phase, seed, settings

FACTOR: Final = float(os.environ.get("NNI_FUZZ_FACTOR", "1"))
"""Times as many cases as usual."""
SEED: Final = int(os.environ.get("NNI_FUZZ_SEED", "0"))
TALLY: Final = os.environ.get("NNI_FUZZ_TALLY", "")
"""File that gets one byte for each case that was tried; empty: nobody counts. Fewer may be tried
than were wanted, where there are no more that differ."""
LONGEST_S: Final = 600 * max(1.0, FACTOR)
"""For all cases of one operation. What hangs is found long before, by the patience of a call."""

_Test = TypeVar("_Test", bound=Callable[..., Any])


def cases(usual: int) -> Callable[[_Test], _Test]:
    """Decorate a `hypothesis.given` test: so many cases in a usual run, always the same ones."""

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
            # What hypothesis calls once for each case, the way that its documentation names.
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
