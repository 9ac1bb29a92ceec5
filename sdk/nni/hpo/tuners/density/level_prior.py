"""User priors of one level of a space, over its rows.

Shapes: m rows, d numeric columns, c choices.
"""

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.encoding.columns import Level
from nni.hpo.models.prior_density import NumberDensity, OptionDensity
from nni.hpo.space.user_priors import NumberPrior, OptionPrior


class LevelPrior:
    """Density of the user priors of one level, relative to the distribution of the space.

    Args:
        level: whose parameters have the priors.
    """

    def __init__(self, level: Level) -> None:
        self._numbers = {
            index: NumberDensity(column.parameter.prior)
            for index, column in enumerate(level.numeric)
            if isinstance(column.parameter.prior, NumberPrior)
        }
        self._options = {
            index: OptionDensity.of(column.parameter.prior)
            for index, column in enumerate(level.choices)
            if isinstance(column.parameter.prior, OptionPrior)
        }

    def log_ratio(self, points: Floats, options: Ints) -> Floats:
        """Return the log densities `(m,)` at points `(m, d)` with options `(m, c)`."""
        total = np.zeros(len(points))
        for index, density in self._numbers.items():
            total += density.log_ratio(points[:, index])
        for index, chosen in self._options.items():
            total += chosen.log_ratios[options[:, index]]
        return total

    def redrawn(
        self, points: Floats, options: Ints, rng: np.random.Generator
    ) -> tuple[Floats, Ints]:
        """Return rows with draws of the user priors where there are any.

        Args:
            points: `(m, d)`.
            options: `(m, c)`.
            rng: of the draws.
        """
        points, options = points.copy(), options.copy()
        for index, density in self._numbers.items():
            points[:, index] = density.quantiles(rng.random(len(points)))
        for index, chosen in self._options.items():
            options[:, index] = chosen.quantiles(rng.random(len(options)))
        return points, options


def level_prior(level: Level) -> LevelPrior | None:
    """Return the user priors of a level; None if it has none of its own."""
    has_prior = any(parameter.prior is not None for parameter in level.parameters)
    return LevelPrior(level) if has_prior else None
