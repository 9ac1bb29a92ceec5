"""Finding the most promising point of a unit cube under a Gaussian process.

First many points are rated: random ones, and ones near the best observations at several distances.
The best few of them then climb, and those of a discrete space go on to better neighbours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.unit_cube import PointKey, UnitCube, best_free
from nni.hpo.models.gaussian_process import Posterior
from nni.hpo.models.lbfgs import minimise
from nni.hpo.tuners.bayesian.acquisition import Acquisition

_SCALES: Final = (0.3, 0.1, 0.03, 0.01, 0.001)
"""Standard deviations of the steps from good observations."""
_MOVES: Final = 4
"""Rounds of going to a better neighbour in the discrete coordinates."""
_HALVINGS: Final = 8
"""Of the way to a point that breaks a constraint."""
_APART: Final = 1e-6
"""Points closer than this, per axis, teach a model without noise nothing new."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work one search may do."""

    samples: int
    """Points that are rated; >= 1."""
    climbs: int
    """How many of them climb."""
    evaluations: int
    """Of the acquisition function, per climb."""


def search_effort(count: int, seconds: float, most_samples: int, most_climbs: int) -> Effort:
    """Return how much one ask may do with a model of `count` results.

    Args:
        count: >= 1.
        seconds: that the ask may take, the model itself included.
        most_samples: upper limit of the points that are rated.
        most_climbs: upper limit of the climbs.
    """
    per_sample = count * 4e-8 + count * count * 2e-10  # seconds, measured
    samples = int(min(0.25 * seconds / per_sample, 20_000 * seconds, most_samples))
    per_climb = 30 * (1e-4 + count * count * 8e-10)
    climbs = int(min(0.25 * seconds / per_climb, 50 * seconds, most_climbs))
    return Effort(max(samples, 1), max(climbs, 1), evaluations=30)


def candidates(cube: UnitCube, good: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return `(m, d)` points of the space to rate: about `count`, or all if there are fewer.

    Args:
        cube: the space.
        good: `(k, d)` points near which to look too; may be empty.
        count: >= 1.
        rng: of the draws.
    """
    everything = cube.all_points(count)
    if everything is not None:
        return everything
    near = count // 2 if len(good) else 0
    points = [cube.draw(rng, count - near)]
    if near:
        centres = good[rng.integers(len(good), size=near)]
        scales = np.array(_SCALES)[rng.integers(len(_SCALES), size=near)]
        steps = rng.standard_normal(centres.shape) * scales[:, None]
        # Most steps change some coordinates only, as most parameters matter little.
        kept = rng.random(centres.shape) < rng.random((near, 1))
        moved = np.where(kept, centres, centres + steps)
        points.append(cube.allowed(cube.snap(moved)))
    return np.concatenate(points)


def best_point(
    cube: UnitCube,
    model: Posterior,
    acquisition: Acquisition,
    best_loss: float,
    rated: Floats,
    taken: set[PointKey],
    effort: Effort,
) -> Floats | None:
    """Return the point `(d,)` of the space with the greatest acquisition that is not taken.

    Args:
        cube: the space.
        model: what is believed.
        acquisition: what is maximised.
        best_loss: on the model's scale.
        rated: `(m, d)` points of the space to begin with.
        taken: points that must not be returned.
        effort: how long to look.

    Returns:
        None if every point found is taken.
    """

    def rate(points: Floats) -> Floats:
        return acquisition(*model.predict(points), best_loss)[0]

    def negative(point: Floats) -> tuple[float, Floats]:
        mean, deviation, mean_rise, deviation_rise = model.slopes(point)
        value, by_mean, by_deviation = acquisition(
            np.array([mean]), np.array([deviation]), best_loss
        )
        return -float(value[0]), -(by_mean[0] * mean_rise + by_deviation[0] * deviation_rise)

    ratings = rate(rated)
    if cube.size is not None and cube.size <= len(rated):  # all points were rated
        return best_free(cube, rated, ratings, taken)
    order = np.argsort(-ratings, kind="stable")
    low, high = np.zeros(len(cube)), np.ones(len(cube))
    found = [rated[order[: max(effort.climbs * 4, 32)]]]
    for start in apart(rated[order], effort.climbs):
        top, _ = minimise(negative, start, low, high, evaluations=effort.evaluations)
        reached = _allowed_towards(cube, start, top)
        found.append(_settled(cube, rate, reached)[None, :])
    points = np.concatenate(found)
    return best_free(cube, points, rate(points), taken)


def _allowed_towards(cube: UnitCube, start: Floats, top: Floats) -> Floats:
    """Return the point of the space at `top`, or on the way to it as far as is allowed."""
    reached: Floats = cube.snap(top[None, :])[0]
    if cube.allows(reached):
        return reached
    inside, outside = start, top
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        if cube.allows(cube.snap(middle[None, :])[0]):
            inside = middle
        else:
            outside = middle
    snapped: Floats = cube.snap(inside[None, :])[0]
    return snapped


def apart(points: Floats, count: int) -> list[Floats]:
    """Return the first `count` points that are not nearly the same."""
    chosen: list[Floats] = []
    for point in points:
        if len(chosen) == count:
            break
        if all(np.abs(point - other).max(initial=0.0) > 10 * _APART for other in chosen):
            chosen.append(point)
    return chosen


def _settled(cube: UnitCube, rate: Callable[[Floats], Floats], point: Floats) -> Floats:
    """Return what a point becomes by going to the best of its discrete neighbours."""
    rating = -np.inf
    for _ in range(_MOVES):
        around = np.concatenate([point[None, :], cube.allowed(cube.neighbours(point))])
        if len(around) == 1:
            return point
        ratings = rate(around)
        top = int(np.argmax(ratings))
        if top == 0 or ratings[top] <= rating:
            return point
        point, rating = around[top], float(ratings[top])
    return point
