"""How many cases a fuzzing test tries: few in every run, many in the benchmark of fuzzing."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, Phase, seed, settings

FACTOR: Final = float(os.environ.get("NNI_FUZZ_FACTOR", "1"))
"""Times as many cases as usual."""
SEED: Final = int(os.environ.get("NNI_FUZZ_SEED", "0"))

_Test = TypeVar("_Test", bound=Callable[..., Any])


def cases(usual: int) -> Callable[[_Test], _Test]:
    """Decorate a `hypothesis.given` test: so many cases in a usual run, always the same ones."""

    def decorate(test: _Test) -> _Test:
        limited = settings(
            max_examples=max(1, round(usual * FACTOR)),
            deadline=None,
            database=None,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        return seed(SEED)(limited(test))

    return decorate
