"""Search spaces with branches as points of one cube."""

from random import Random

import numpy as np
import pytest

from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import same_value
from nni.hpo.space.parser import parse_space
from tests.support.search_spaces import DEEP, NONE

SPACE = {
    "model": {"_type": "choice", "_value": [NONE, DEEP, "plain"]},
    "rate": {"_type": "loguniform", "_value": [1e-4, 1]},
    "width": {"_type": "choice", "_value": [64, 8, 16]},
    "bell": {"_type": "normal", "_value": [5, 2]},
    "step": {"_type": "quniform", "_value": [2, 10, 5]},
}
CONSTRAINED = {
    "a": {"_type": "uniform", "_value": [0, 1]},
    "b": {"_type": "uniform", "_value": [0, 1]},
    "_constraints": ["a + b <= 1"],
}


def cube_of(space: JsonValue) -> TreeCube:
    return TreeCube(parse_space(space))


def test_every_configuration_comes_back_from_its_point() -> None:
    cube = cube_of(SPACE)
    rng = Random(1)

    for _ in range(200):
        configuration = cube.space.draw(rng)
        back = cube.configuration(cube.point(configuration))
        assert same_value({**back, "rate": 0, "bell": 0}, {**configuration, "rate": 0, "bell": 0})
        assert back["rate"] == pytest.approx(configuration["rate"], rel=1e-12)
        assert back["bell"] == pytest.approx(configuration["bell"], rel=1e-12)


def test_snapped_draws_are_points_of_configurations_in_the_space() -> None:
    cube = cube_of(SPACE)
    points = cube.snap(cube.uniform(np.random.default_rng(0), 200))

    for point in points:
        assert cube.point(cube.configuration(point)) == pytest.approx(point, abs=1e-9)


def test_points_that_differ_in_inactive_parameters_only_are_one() -> None:
    cube = cube_of(SPACE)
    raw = cube.uniform(np.random.default_rng(0), 2)
    model = next(i for i, axis in enumerate(cube.axes) if axis.path == "model")
    slope = next(i for i, axis in enumerate(cube.axes) if axis.path.endswith("slope"))
    raw[1] = raw[0]
    raw[:, model] = 0
    raw[1, slope] = 0.9

    first, second = cube.snap(raw)

    assert first.tolist() == second.tolist()


def test_two_options_lie_at_distance_one_and_numbers_where_they_are() -> None:
    cube = cube_of({"word": {"_type": "choice", "_value": ["a", "b", "c"]}})

    features = cube.features(np.array([[0.0], [1.0], [2.0]]))

    gaps = ((features[:, None] - features[None]) ** 2).sum(axis=-1)
    assert gaps == pytest.approx(1.0 - np.eye(3))


def test_an_option_is_chosen_with_the_branches_above_it() -> None:
    cube = cube_of(SPACE)
    rng = np.random.default_rng(0)
    act = next(i for i, axis in enumerate(cube.axes) if axis.path.endswith("act"))

    points = cube.forced(cube.uniform(rng, 20), act, 1)

    for point in points:
        assert cube.configuration(point)["model"]["act"]["_name"] == "leaky"


def test_neighbours_differ_in_one_discrete_parameter() -> None:
    cube = cube_of({"a": SPACE["width"], "b": {"_type": "choice", "_value": ["x", "y", "z"]}})

    near = [cube.configuration(p) for p in cube.neighbours(cube.point({"a": 16, "b": "x"}))]

    assert near == [{"a": a, "b": b} for a, b in ((8, "x"), (64, "x"), (16, "y"), (16, "z"))]


def test_all_points_of_a_finite_space_and_none_of_others() -> None:
    finite = cube_of({"a": SPACE["step"], "b": {"_type": "choice", "_value": ["x", "y"]}})
    points = finite.all_points(100)

    assert finite.size == 6
    assert points is not None
    assert len({tuple(point) for point in points.tolist()}) == 6
    assert finite.all_points(5) is None
    assert cube_of(SPACE).all_points(10**6) is None


def test_only_allowed_points_remain() -> None:
    cube = cube_of(CONSTRAINED)
    points = cube.snap(cube.uniform(np.random.default_rng(0), 100))

    allowed = cube.allowed(points)

    assert 0 < len(allowed) < 100
    assert (allowed.sum(axis=1) <= 1).all()


def test_shares_of_the_prior_cover_every_option() -> None:
    cube = cube_of({"b": {"_type": "choice", "_value": ["x", "y", "z"]}})

    points = cube.stretched(np.array([[0.1], [0.5], [0.99]]))

    assert points.ravel().tolist() == [0, 1, 2]
