"""Looking for the most promising point."""

import numpy as np
import pytest

from nni.hpo.encoding.unit_cube import UnitCube, point_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gaussian_process import Posterior, posterior
from nni.hpo.models.matern import Matern
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.acquisition import confidence_bound
from nni.hpo.tuners.bayesian.acquisition_search import Effort, best_point, candidates, search_effort

SQUARE = {key: {"_type": "uniform", "_value": [0, 1]} for key in "xy"}
GRID = {key: {"_type": "randint", "_value": [0, 4]} for key in "xy"}
LOWEST = confidence_bound(0.0)


def cube_of(space: JsonValue) -> UnitCube:
    return UnitCube(parse_space(space))


def bowl_model() -> Posterior:
    """Give a model of a bowl with its lowest point at (0.3, 0.6)."""
    points = np.random.default_rng(0).random((60, 2))
    targets = ((points - [0.3, 0.6]) ** 2).sum(axis=1) * 10 - 1
    return posterior(points, targets, Matern.of(2.5), 1e-9, np.log([0.7, 0.7, 1e-8]))


def test_climbs_to_the_best_point_between_candidates() -> None:
    cube = cube_of(SQUARE)
    rated = candidates(cube, np.empty((0, 2)), 20, np.random.default_rng(0))

    point = best_point(cube, bowl_model(), LOWEST, 0.0, rated, set(), Effort(20, 2, 40))

    assert point == pytest.approx([0.3, 0.6], abs=0.02)


def test_rates_every_point_of_a_small_space() -> None:
    cube = cube_of(GRID)
    rated = candidates(cube, np.empty((0, 2)), 100, np.random.default_rng(0))
    effort = Effort(100, 1, 1)

    best = best_point(cube, bowl_model(), LOWEST, 0.0, rated, set(), effort)
    assert best is not None
    second = best_point(cube, bowl_model(), LOWEST, 0.0, rated, {point_key(best)}, effort)

    assert len(rated) == 16
    assert cube.configuration(best) == {"x": 1, "y": 2}
    assert second is not None
    assert second.tolist() != best.tolist()


def test_nothing_is_left_when_all_points_are_taken() -> None:
    cube = cube_of(GRID)
    rated = candidates(cube, np.empty((0, 2)), 100, np.random.default_rng(0))
    taken = {point_key(point) for point in rated}

    assert best_point(cube, bowl_model(), LOWEST, 0.0, rated, taken, Effort(100, 1, 1)) is None


def test_steps_to_better_values_of_a_discrete_space() -> None:
    cube = cube_of({key: {"_type": "randint", "_value": [0, 1000]} for key in "xy"})
    rated = candidates(cube, np.empty((0, 2)), 10, np.random.default_rng(0))

    point = best_point(cube, bowl_model(), LOWEST, 0.0, rated, set(), Effort(10, 1, 40))

    assert point is not None
    assert point_key(cube.snap(point[None, :])[0]) == point_key(point)
    assert point == pytest.approx([0.3, 0.6], abs=0.02)


def test_half_of_the_candidates_lie_near_good_results() -> None:
    good = np.array([[0.5, 0.5]])

    points = candidates(cube_of(SQUARE), good, 1000, np.random.default_rng(0))

    near = (np.abs(points - good).max(axis=1) < 0.05).mean()
    assert points.shape == (1000, 2)
    assert 0.25 < near < 0.5
    assert ((points >= 0) & (points <= 1)).all()


@pytest.mark.parametrize("count", [1, 10, 400, 10_000])
def test_effort_has_upper_limits_and_is_never_nothing(count: int) -> None:
    small = search_effort(count, 0.0, 5, 3)
    wide = search_effort(count, 1e9, 5, 3)

    assert (small.samples, small.climbs) == (1, 1)
    assert (wide.samples, wide.climbs) == (5, 3)


def test_effort_falls_with_the_size_of_the_model() -> None:
    few, many = (search_effort(count, 0.1, 100_000, 250) for count in (100, 400))

    assert many.samples < few.samples
    assert many.climbs <= few.climbs
