"""Acceptance of random draws by their probability of success."""

import math
from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

import numpy as np

THINNED: Final = 16
"""Draws of the prior of which one is accepted."""

DrawT = TypeVar("DrawT")


def accepted(draws: Sequence[DrawT], log_chances: Sequence[float], rng: Random) -> DrawT:
    """Return the first draw accepted with its probability of success; if none is, the likeliest.

    If none is, the one of the greatest probability.

    Args:
        draws: at least one.
        log_chances: log probability of each.
        rng: of the acceptance.
    """
    for draw, chance in zip(draws, log_chances, strict=True):
        if rng.random() < math.exp(chance):
            return draw
    return draws[int(np.argmax(log_chances))]
