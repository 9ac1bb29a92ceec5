"""User priors: what a user expects of the best value of a parameter, as a distribution.

A user prior guides the first trials of a search. It neither changes the range of a parameter nor
excludes a value: each has a share of the distribution of the space in it, so that a search can find
a wrong prior out. Standard library only.

Source: Hvarfner, Stoll, Souza, Lindauer, Hutter and Nardi, PiBO, ICLR 2022 (arXiv:2204.11051).
`value` and `confidence` are those of NePS, `weights` those of ConfigSpace.
"""

import math
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

PRIOR_KEY: Final = "_prior"
"""Key of a parameter's user prior in a search space."""

TUNERS_WITH_PRIORS: Final = ("auto", "GPTuner", "Portfolio", "Random", "TPE")
"""Tuners that use priors, for errors. `./dev algorithms` writes the names from the declarations."""

PRIOR_SHARE: Final = 0.5
"""Share of the draws of a space that follow the user priors; the others ignore them."""

SPACE_SHARE: Final = 0.05
"""Share of the distribution of the space in each user prior."""

DEVIATIONS: Final = {"low": 0.3, "medium": 0.15, "high": 0.05}
"""Confidence in a number, and the standard deviation around it, in shares of the range."""

ODDS: Final = {"low": 2.0, "medium": 5.0, "high": 20.0}
"""Confidence in an option, and its odds against each other one."""

_SQRT_HALF: Final = math.sqrt(0.5)


@dataclass(frozen=True, slots=True)
class NumberPrior:
    """Normal distribution cut to a range, of the share of the (logarithmic) range below a value."""

    centre: float
    """Share of the range below the expected value, in [0, 1]."""
    deviation: float
    """Standard deviation before the cut, in shares of the range, > 0."""

    @property
    def mass(self) -> float:
        """Part of the normal distribution that lies within the range."""
        low, high = -self.centre / self.deviation, (1.0 - self.centre) / self.deviation
        return 0.5 * (math.erf(high * _SQRT_HALF) - math.erf(low * _SQRT_HALF))

    def draw(self, rng: Random) -> float:
        """Return a share in [0, 1]: 5 % uniform, else normal around the centre, cut to it."""
        if rng.random() < SPACE_SHARE:
            return rng.random()
        while True:  # each draw is accepted with a probability of 0.49 at least
            share = rng.gauss(self.centre, self.deviation)
            if 0.0 <= share <= 1.0:
                return share


@dataclass(frozen=True, slots=True)
class OptionPrior:
    """Probability of each option of a choice."""

    probabilities: tuple[float, ...]
    """By position of the option, > 0, with the sum 1."""

    def draw(self, rng: Random) -> int:
        """Return the position of an option, drawn by the probabilities."""
        return rng.choices(range(len(self.probabilities)), self.probabilities)[0]


UserPrior: TypeAlias = NumberPrior | OptionPrior


def option_prior(weights: list[float]) -> OptionPrior:
    """Return a choice's prior: normalised weights, with 5 % of equal probabilities mixed in.

    Args:
        weights: of the options by position, >= 0, with a sum > 0.
    """
    total, even = sum(weights), SPACE_SHARE / len(weights)
    return OptionPrior(tuple((1.0 - SPACE_SHARE) * weight / total + even for weight in weights))
