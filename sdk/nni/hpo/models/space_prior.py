"""User priors of a whole space, over its vectors and its features.

The parameters are independent; one that is not active, or has no prior, has no part.

Shapes: m vectors, d axes (parameters), f features.
"""

from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import Axis, EncodedSpace
from nni.hpo.models.prior_density import NumberDensity, OptionDensity
from nni.hpo.space.domains import Branch, ChoiceDomain
from nni.hpo.space.user_priors import NumberPrior, OptionPrior

_MIDDLE: Final = 0.5


class SpacePrior:
    """Density of the user priors of an encoded space, relative to the distribution of the space.

    Args:
        space: in which at least one parameter has a user prior.
    """

    def __init__(self, space: EncodedSpace) -> None:
        self._space = space
        self._numbers: dict[int, NumberDensity] = {}
        self._options: dict[int, OptionDensity] = {}
        for index, axis in enumerate(space.axes):
            column = axis.number or axis.choice
            prior = None if column is None else column.parameter.prior
            if isinstance(prior, NumberPrior):
                self._numbers[index] = NumberDensity(prior)
            elif isinstance(prior, OptionPrior):
                self._options[index] = _over_coordinates(axis, prior)

    def __len__(self) -> int:
        """Return the number of parameters with a user prior."""
        return len(self._numbers) + len(self._options)

    def log_ratio(self, vectors: Floats) -> Floats:
        """Return log user priors `(m,)` at `(m, d)` vectors, summed over active parameters."""
        active = self._space.active(vectors)
        total = np.zeros(len(vectors))
        for index, density in self._numbers.items():
            total += np.where(active[:, index], density.log_ratio(vectors[:, index]), 0.0)
        for index, options in self._options.items():
            axis, coordinates = self._space.axes[index], vectors[:, index]
            if axis.values is None:
                found = options.log_ratios[np.maximum(coordinates, 0).astype(np.int64)]
            else:
                found = np.interp(coordinates, axis.values, options.log_ratios)
            total += np.where(active[:, index], found, 0.0)
        return total

    def log_ratio_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return the log user prior at features `(f,)`, up to a constant, and its gradient.

        The constant is that of the unordered choices and of inactive parameters, which a gradient
        ascent does not change.
        """
        total, gradient = 0.0, np.zeros_like(features)
        for index, density in self._numbers.items():
            column = self._space.axes[index].feature
            here = features[column : column + 1]
            total += float(density.log_ratio(here)[0])
            gradient[column] = density.slope(here)[0]
        for index, options in self._options.items():
            axis = self._space.axes[index]
            if axis.values is not None:
                value, slope = _interpolated(
                    float(features[axis.feature]), axis.values, options.log_ratios
                )
                total += value
                gradient[axis.feature] = slope
        return total, gradient

    def filled_from(self, shares: Floats) -> Floats:
        """Return `(m, d)` coordinates at shares of each axis' prior, each share in [0, 1).

        All parameters are active, and numbers are not rounded. Where there is no user prior the
        distribution is that of the space; unbounded numbers have the share as coordinate.
        """
        filled = shares.copy()
        for index, axis in enumerate(self._space.axes):
            if index in self._numbers:
                filled[:, index] = self._numbers[index].quantiles(shares[:, index])
            elif index in self._options:
                positions = self._options[index].quantiles(shares[:, index])
                filled[:, index] = positions if axis.values is None else axis.values[positions]
            elif axis.categories:
                filled[:, index] = np.floor(shares[:, index] * axis.categories)
        return filled

    def redrawn(self, filled: Floats, rng: np.random.Generator) -> Floats:
        """Return `(m, d)` filled coordinates with draws of the user priors where there are any."""
        informed = self.filled_from(rng.random(filled.shape))
        axes = [*self._numbers, *self._options]
        redrawn = filled.copy()
        redrawn[:, axes] = informed[:, axes]
        return redrawn

    def mode(self, otherwise: Floats) -> Floats:
        """Return the vector `(d,)` of the user priors' modes; `otherwise` where there is none.

        Args:
            otherwise: `(d,)`, filled coordinates, for parameters without a user prior.
        """
        filled = otherwise.copy()
        for index, density in self._numbers.items():
            filled[index] = density.mode
        for index, options in self._options.items():
            values = self._space.axes[index].values
            filled[index] = options.mode if values is None else values[options.mode]
        vector: Floats = self._space.snap(filled[None, :])[0]
        return vector


def space_prior(space: EncodedSpace) -> SpacePrior | None:
    """Return the user priors of a space; None if there are none."""
    return SpacePrior(space) if space.search_space.has_priors else None


def _over_coordinates(axis: Axis, prior: OptionPrior) -> OptionDensity:
    """Return the density of a choice over the coordinates of its distinct options, in order."""
    assert axis.choice is not None
    domain = axis.choice.domain
    probabilities = np.zeros(len(axis.positions))
    for position, probability in enumerate(prior.probabilities):
        probabilities[axis.positions.index(_first(domain, position))] += probability
    return OptionDensity(probabilities)


def _first(domain: ChoiceDomain, position: int) -> int:
    """Return the first position of an option that means the same as the one at `position`."""
    option = domain.options[position]
    return position if isinstance(option, Branch) else domain.position(option)


def _interpolated(at: float, places: Floats, values: Floats) -> tuple[float, float]:
    """Return the value and slope at a place of a piecewise linear function."""
    left = min(max(int(np.searchsorted(places, at, side="right")) - 1, 0), len(places) - 2)
    slope = float((values[left + 1] - values[left]) / (places[left + 1] - places[left]))
    return float(values[left]) + slope * (at - float(places[left])), slope
