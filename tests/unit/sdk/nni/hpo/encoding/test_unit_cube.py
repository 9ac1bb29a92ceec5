"""Search spaces as unit cubes."""

from random import Random

import numpy as np
import pytest

from nni.hpo.encoding.unit_cube import UnitCube, best_free, point_key
from nni.hpo.json_value import JsonValue
from nni.hpo.space.parser import parse_space

SPACE = {
    "float": {"_type": "uniform", "_value": [-2, 2]},
    "log": {"_type": "loguniform", "_value": [1e-4, 1]},
    "step": {"_type": "quniform", "_value": [2, 10, 5]},
    "integer": {"_type": "randint", "_value": [1, 5]},
    "number": {"_type": "choice", "_value": [64, 1, 16.5]},
    "word": {"_type": "choice", "_value": ["b", None, [1]]},
}


def cube_of(space: JsonValue) -> UnitCube:
    return UnitCube(parse_space(space))


def test_every_configuration_comes_back_from_its_point() -> None:
    cube = cube_of(SPACE)
    rng = Random(3)

    for _ in range(200):
        configuration = cube.space.draw(rng)
        back = cube.configuration(cube.point(configuration))
        assert back == {**configuration, "log": pytest.approx(configuration["log"], rel=1e-12)}
        assert [type(v) for v in back.values()] == [type(v) for v in configuration.values()]


def test_snapped_points_are_those_of_their_configurations() -> None:
    cube = cube_of(SPACE)
    points = cube.draw(np.random.default_rng(0), 200)

    for point in points:
        assert cube.point(cube.configuration(point)) == pytest.approx(point, abs=1e-12)


def test_numbers_of_a_choice_stand_in_their_order() -> None:
    cube = cube_of({"x": SPACE["number"]})

    assert [cube.configuration(np.array([x]))["x"] for x in (0, 0.5, 1)] == [1, 16.5, 64]


def test_logarithmic_axis_has_its_middle_at_the_geometric_mean() -> None:
    cube = cube_of({"x": SPACE["log"]})

    assert cube.configuration(np.array([0.5]))["x"] == pytest.approx(1e-2)


def test_size_counts_points_and_is_unknown_for_a_continuum() -> None:
    finite = {key: SPACE[key] for key in ("step", "integer", "number", "word")}

    assert cube_of(finite).size == 3 * 4 * 3 * 3
    assert cube_of(SPACE).size is None
    assert cube_of({"x": {"_type": "randint", "_value": [0, 10**6]}}).size is None


def test_all_points_are_listed_once() -> None:
    cube = cube_of({key: SPACE[key] for key in ("step", "integer", "word")})

    points = cube.all_points(36)

    assert points is not None
    assert len({point_key(point) for point in points}) == 36
    assert cube.all_points(35) is None


def test_option_listed_twice_is_one_point() -> None:
    assert cube_of({"x": {"_type": "choice", "_value": [1, 1.0, "a", "a"]}}).size == 2


def test_neighbours_are_next_values_and_all_other_options() -> None:
    cube = cube_of({"i": SPACE["integer"], "w": SPACE["word"], "f": SPACE["float"]})
    point = cube.point({"i": 2, "w": None, "f": 0.5})

    around = [cube.configuration(other) for other in cube.neighbours(point)]

    assert [(one["i"], one["w"]) for one in around] == [(1, None), (3, None), (2, "b"), (2, [1])]


def test_first_point_is_the_middle_and_the_first_options() -> None:
    first = cube_of(SPACE).first()

    assert cube_of(SPACE).configuration(first) == {
        "float": 0.0,
        "log": pytest.approx(1e-2),
        "step": 5.0,
        "integer": 2,
        "number": 64,
        "word": "b",
    }


def test_range_of_one_value_has_one_point() -> None:
    cube = cube_of({"x": {"_type": "uniform", "_value": [3, 3]}})

    assert cube.size == 1
    assert cube.configuration(cube.first()) == {"x": 3.0}


def test_best_free_point_skips_those_taken() -> None:
    cube = cube_of({"x": {"_type": "uniform", "_value": [0, 1]}})
    points = np.array([[0.1], [0.2], [0.3]])
    ratings = np.array([1.0, 3.0, 2.0])

    free = best_free(cube, points, ratings, {point_key(points[1])})

    assert free is not None
    assert free.tolist() == [0.3]
    assert best_free(cube, points, ratings, {point_key(point) for point in points}) is None
