"""Finding the most promising point of a tree of parameters under a Gaussian process.

Candidates are rated, the best of them climb along their active numbers, and go on to better
neighbours in what is discrete. What differs between the ways to search is where candidates lie.

Source of the region around the best point: Eriksson, Pearce, Gardner, Turner and Poloczek, Scalable
Global Optimization via Local Bayesian Optimization, NeurIPS 2019, section 2.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.encoding.unit_cube import PointKey, best_free
from nni.hpo.models.lbfgs import minimise
from nni.hpo.models.plateaus import Familiar
from nni.hpo.tuners.bayesian.acquisition import Acquisition
from nni.hpo.tuners.bayesian.acquisition_search import Effort, apart

_STEPS: Final = (0.3, 0.1, 0.03, 0.01, 0.001)
"""Standard deviations of the steps from good points, for numbers."""
_LOCAL_STEPS: Final = (0.3, 0.1, 0.03, 0.01)
"""The same within a region, in shares of its sides."""
_FEWEST_MOVED: Final = 4
"""Axes that change, at least, in a candidate within a region."""
_SHARE_MOVED: Final = 0.3
"""Share of the axes that change there."""
_MOST_FLIPPED: Final = 0.5
_LEAST_FLIPPED: Final = 0.1
"""Bounds of the chance that an unordered choice is drawn anew there."""
_LENGTH_RATIOS: Final = (0.3, 3.0)
"""Bounds of a side of the region, relative to their geometric mean."""
_STARTS: Final = 400
"""Best candidates among which those that climb are chosen."""
_KEPT: Final = 32
"""Best candidates that stand beside those that climbed."""
_LEAST_NOVELTY: Final = 1e-6
"""Chance of a new result, at least, so that its logarithm is finite."""
_MOVES: Final = 4
"""Rounds of going to a better discrete neighbour."""


@dataclass(frozen=True, slots=True)
class Region:
    """A box of coordinates within which numbers may change."""

    low: Floats
    """`(d,)`"""
    high: Floats
    """`(d,)`"""


def whole(cube: TreeCube) -> Region:
    """Return the region that is the cube."""
    return Region(np.zeros(len(cube)), np.ones(len(cube)))


def around(centre: Floats, lengths: Floats, size: float, least: Floats) -> Region:
    """Return a box around a `(d,)` point, longer where the function changes slowly.

    Args:
        centre: of the box.
        lengths: `(d,)`, over which the function changes.
        size: geometric mean of the sides.
        least: `(d,)`, how far it reaches from the centre at least.
    """
    ratios = np.clip(lengths / np.exp(np.log(lengths).mean()), *_LENGTH_RATIOS)
    reach = np.maximum(0.5 * size * ratios, least)
    return Region(np.clip(centre - reach, 0, 1), np.clip(centre + reach, 0, 1))


def everywhere(cube: TreeCube, good: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return about `count` candidates `(m, d)`: half anywhere, half near `(k, d)` good points."""
    near = _near(cube, good, count // 2, rng)
    return np.concatenate([cube.snap(cube.uniform(rng, count - len(near))), cube.snap(near)])


def within(
    cube: TreeCube,
    centre: Floats,
    region: Region,
    size: float,
    count: int,
    rng: np.random.Generator,
) -> Floats:
    """Return `count` candidates `(m, d)` in a region around a point, a few axes changed in each."""
    dimensions = len(cube)
    start = cube.filled(np.repeat(centre[None, :], count, axis=0), rng)
    sides = region.high - region.low
    scales = np.array(_LOCAL_STEPS)[rng.integers(len(_LOCAL_STEPS), size=count)][:, None]
    moved = np.clip(
        start + scales * sides * rng.standard_normal(start.shape), region.low, region.high
    )
    half = count // 2
    moved[:half] = region.low + sides * rng.random((half, dimensions))
    share = min(1.0, max(_FEWEST_MOVED, _SHARE_MOVED * dimensions) / dimensions)
    mask = rng.random(start.shape) < share
    mask[np.arange(count), rng.integers(dimensions, size=count)] = True
    flip = min(_MOST_FLIPPED, max(0.5 * size, _LEAST_FLIPPED))
    mask &= cube.ordered | (rng.random(start.shape) < flip)
    wanted = np.where(cube.ordered, moved, cube.uniform(rng, count))
    return cube.snap(np.where(mask, wanted, start))


def with_option(
    cube: TreeCube, good: Floats, chosen: tuple[int, int], count: int, rng: np.random.Generator
) -> Floats:
    """Return `count` candidates `(m, d)` with a chosen option of a choice.

    Args:
        cube: the space.
        good: `(k, d)` points with that option near which to look too; may be empty.
        chosen: the axis and the position of the option.
        count: >= 1.
        rng: of the draws.
    """
    near = cube.filled(_near(cube, good, count // 2, rng), rng)
    points = np.concatenate([cube.uniform(rng, count - len(near)), near])
    return cube.forced(points, *chosen)


def _near(cube: TreeCube, good: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return `(count, d)` filled coordinates near good points; none if there are no such."""
    if not len(good):
        return np.empty((0, len(cube)))
    centres = cube.filled(good[rng.integers(len(good), size=count)], rng)
    scales = np.array(_STEPS)[rng.integers(len(_STEPS), size=count)][:, None]
    moved = centres + scales * rng.standard_normal(centres.shape)
    wanted = np.where(cube.ordered, moved, cube.uniform(rng, count))
    # Most steps change some coordinates only, as most parameters matter little.
    changed = rng.random(centres.shape) < rng.random((count, 1))
    return np.where(changed, wanted, centres)


class Model(Protocol):
    """A normal belief about a loss."""

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return means and deviations `(m,)` at `(m, f)` features."""
        ...

    def slopes(self, point: Floats) -> tuple[float, float, Floats, Floats]:
        """Return mean and deviation at `(f,)` features, and the gradients `(f,)` of both."""
        ...


@dataclass(frozen=True, slots=True)
class Ascent(ABC):
    """Climbing to the most promising point, whatever makes a point promising."""

    cube: TreeCube

    @abstractmethod
    def rate(self, points: Floats) -> Floats:
        """Return how promising `(m, d)` points are, `(m,)`."""

    @abstractmethod
    def slope(self, features: Floats) -> tuple[float, Floats]:
        """Return how promising the point of `(f,)` features is, and the gradient `(f,)`."""

    def best(
        self,
        candidates: Floats,
        region: Region,
        taken: set[PointKey],
        effort: Effort,
        *,
        discrete: bool,
    ) -> Floats | None:
        """Return the most promising point `(d,)` that is allowed and not taken.

        Args:
            candidates: `(m, d)` points of the space to begin with.
            region: within which numbers may climb.
            taken: points that must not be returned.
            effort: how long to look.
            discrete: whether to go on to neighbours in what is discrete.

        Returns:
            None if there is none among the points found.
        """
        ratings = self.rate(candidates)
        order = np.argsort(-ratings, kind="stable")
        found = [candidates[order[:_KEPT]]]
        for start in apart(candidates[order[:_STARTS]], effort.climbs):
            top = self._climbed(start, region, effort.evaluations)
            found.append((self._settled(top) if discrete else top)[None, :])
        points = np.concatenate(found)
        return best_free(self.cube, points, self.rate(points), taken)

    def _climbed(self, start: Floats, region: Region, evaluations: int) -> Floats:
        """Return where a point ends that climbs along its active numbers."""
        cube = self.cube
        axes = np.flatnonzero(cube.ordered & cube.active(start[None, :])[0])
        if not len(axes):
            return start
        columns = np.array([cube.axes[axis].feature for axis in axes])
        features = cube.features(start[None, :])[0]

        def negative(numbers: Floats) -> tuple[float, Floats]:
            features[columns] = numbers
            value, rise = self.slope(features)
            return -value, -rise[columns]

        low = np.minimum(region.low[axes], start[axes])
        high = np.maximum(region.high[axes], start[axes])
        numbers, _ = minimise(negative, start[axes], low, high, evaluations=evaluations)
        top = start.copy()
        top[axes] = numbers
        snapped: Floats = cube.snap(top[None, :])[0]
        return snapped

    def _settled(self, point: Floats) -> Floats:
        """Return what a point becomes by going to the best of its discrete neighbours."""
        rating = -np.inf
        for _ in range(_MOVES):
            near = np.concatenate([point[None, :], self.cube.neighbours(point)])
            if len(near) == 1:
                return point
            ratings = self.rate(near)
            top = int(np.argmax(ratings))
            if top == 0 or ratings[top] <= rating:
                return point
            point, rating = near[top], float(ratings[top])
        return point


@dataclass(frozen=True, slots=True)
class Outlook(Ascent):
    """What is believed of one loss, and what is looked for."""

    model: Model
    """Of features."""
    acquisition: Acquisition
    threshold: float
    """Loss to improve on, on the model's scale."""
    familiar: Familiar | None = None
    """Points whose results are known without a trial; None: each point has its own."""

    def rate(self, points: Floats) -> Floats:
        """See the base."""
        means, deviations = self.model.predict(self.cube.features(points))
        rated = self.acquisition(means, deviations, self.threshold)[0]
        if self.familiar is not None:
            # The logarithm of the gain that is expected if the result is a new one, times the
            # chance that it is.
            rated += np.log(np.maximum(self.familiar.novelty(points), _LEAST_NOVELTY))
        return rated

    def slope(self, features: Floats) -> tuple[float, Floats]:
        """See the base."""
        mean, deviation, mean_rise, deviation_rise = self.model.slopes(features)
        value, by_mean, by_deviation = self.acquisition(
            np.array([mean]), np.array([deviation]), self.threshold
        )
        return float(value[0]), by_mean[0] * mean_rise + by_deviation[0] * deviation_rise
