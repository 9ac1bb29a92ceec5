"""Search spaces, flat and with branches, as vectors."""

from random import Random

import numpy as np
import pytest

from nni.hpo.encoding.encoded_space import EncodedSpace, vector_key
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
FLAT = {
    "float": {"_type": "uniform", "_value": [-2, 2]},
    "log": {"_type": "loguniform", "_value": [1e-4, 1]},
    "step": {"_type": "quniform", "_value": [2, 10, 5]},
    "integer": {"_type": "randint", "_value": [1, 5]},
    "number": {"_type": "choice", "_value": [64, 1, 16.5]},
    "word": {"_type": "choice", "_value": ["b", None, [1]]},
}
CONSTRAINED = {
    "a": {"_type": "uniform", "_value": [0, 1]},
    "b": {"_type": "uniform", "_value": [0, 1]},
    "_constraints": ["a + b <= 1"],
}


def space_of(search_space: JsonValue) -> EncodedSpace:
    return EncodedSpace(parse_space(search_space))


def test_every_configuration_comes_back_from_its_vector() -> None:
    space = space_of(SPACE)
    rng = Random(1)

    for _ in range(200):
        configuration = space.search_space.draw(rng)
        back = space.decode(space.encode(configuration))
        assert same_value({**back, "rate": 0, "bell": 0}, {**configuration, "rate": 0, "bell": 0})
        assert back["rate"] == pytest.approx(configuration["rate"], rel=1e-12)
        assert back["bell"] == pytest.approx(configuration["bell"], rel=1e-12)


def test_snapped_draws_are_vectors_of_configurations_in_the_space() -> None:
    space = space_of(SPACE)
    points = space.snap(space.sample_filled(np.random.default_rng(0), 200))

    for point in points:
        assert space.encode(space.decode(point)) == pytest.approx(point, abs=1e-9)


def test_vectors_that_differ_in_inactive_parameters_only_are_one() -> None:
    space = space_of(SPACE)
    raw = space.sample_filled(np.random.default_rng(0), 2)
    model = next(i for i, axis in enumerate(space.axes) if axis.path == "model")
    slope = next(i for i, axis in enumerate(space.axes) if axis.path.endswith("slope"))
    raw[1] = raw[0]
    raw[:, model] = 0
    raw[1, slope] = 0.9

    first, second = space.snap(raw)

    assert first.tolist() == second.tolist()


def test_two_options_lie_at_distance_one_and_numbers_where_they_are() -> None:
    space = space_of({"word": {"_type": "choice", "_value": ["a", "b", "c"]}})

    features = space.features(np.array([[0.0], [1.0], [2.0]]))

    gaps = ((features[:, None] - features[None]) ** 2).sum(axis=-1)
    assert gaps == pytest.approx(1.0 - np.eye(3))


def test_an_option_is_chosen_with_the_branches_above_it() -> None:
    space = space_of(SPACE)
    rng = np.random.default_rng(0)
    act = next(i for i, axis in enumerate(space.axes) if axis.path.endswith("act"))

    points = space.with_option(space.sample_filled(rng, 20), act, 1)

    for point in points:
        assert space.decode(point)["model"]["act"]["_name"] == "leaky"


def test_neighbours_differ_in_one_discrete_parameter() -> None:
    space = space_of({"a": SPACE["width"], "b": {"_type": "choice", "_value": ["x", "y", "z"]}})

    near = [space.decode(p) for p in space.neighbours(space.encode({"a": 16, "b": "x"}))]

    assert near == [{"a": a, "b": b} for a, b in ((8, "x"), (64, "x"), (16, "y"), (16, "z"))]


def test_all_vectors_of_a_finite_space_and_none_of_others() -> None:
    finite = space_of({"a": SPACE["step"], "b": {"_type": "choice", "_value": ["x", "y"]}})
    points = finite.all_vectors(100)

    assert finite.size == 6
    assert points is not None
    assert len({tuple(point) for point in points.tolist()}) == 6
    assert finite.all_vectors(5) is None
    assert space_of(SPACE).all_vectors(10**6) is None


def test_only_allowed_vectors_remain() -> None:
    space = space_of(CONSTRAINED)
    points = space.snap(space.sample_filled(np.random.default_rng(0), 100))

    allowed = space.allowed(points)

    assert 0 < len(allowed) < 100
    assert (allowed.sum(axis=1) <= 1).all()


def test_shares_of_the_prior_cover_every_option() -> None:
    space = space_of({"b": {"_type": "choice", "_value": ["x", "y", "z"]}})

    points = space.from_unit_cube(np.array([[0.1], [0.5], [0.99]]))

    assert points.ravel().tolist() == [0, 1, 2]


def test_every_configuration_of_a_flat_space_comes_back() -> None:
    space = space_of(FLAT)
    rng = Random(3)

    for _ in range(200):
        configuration = space.search_space.draw(rng)
        back = space.decode(space.encode(configuration))
        assert back == {**configuration, "log": pytest.approx(configuration["log"], rel=1e-12)}
        assert [type(v) for v in back.values()] == [type(v) for v in configuration.values()]


def test_sampled_vectors_are_those_of_their_configurations() -> None:
    space = space_of(FLAT)
    points = space.sample(np.random.default_rng(0), 200)

    for point in points:
        assert space.encode(space.decode(point)) == pytest.approx(point, abs=1e-12)


def test_numbers_of_a_choice_stand_in_their_order() -> None:
    space = space_of({"x": FLAT["number"]})

    assert [space.decode(np.array([x]))["x"] for x in (0, 0.5, 1)] == [1, 16.5, 64]


def test_logarithmic_axis_has_its_middle_at_the_geometric_mean() -> None:
    space = space_of({"x": FLAT["log"]})

    assert space.decode(np.array([0.5]))["x"] == pytest.approx(1e-2)


def test_size_counts_points_and_is_unknown_for_a_continuum() -> None:
    finite = {key: FLAT[key] for key in ("step", "integer", "number", "word")}

    assert space_of(finite).size == 3 * 4 * 3 * 3
    assert space_of(FLAT).size is None
    assert space_of({"x": {"_type": "randint", "_value": [0, 10**6]}}).size is None


def test_all_vectors_are_listed_once() -> None:
    space = space_of({key: FLAT[key] for key in ("step", "integer", "word")})

    points = space.all_vectors(36)

    assert points is not None
    assert len({vector_key(point) for point in points}) == 36
    assert space.all_vectors(35) is None


def test_option_listed_twice_is_one() -> None:
    assert space_of({"x": {"_type": "choice", "_value": [1, 1.0, "a", "a"]}}).size == 2


def test_neighbours_are_next_values_and_all_other_options() -> None:
    space = space_of({"i": FLAT["integer"], "w": FLAT["word"], "f": FLAT["float"]})
    point = space.encode({"i": 2, "w": None, "f": 0.5})

    around = [space.decode(other) for other in space.neighbours(point)]

    assert [(one["i"], one["w"]) for one in around] == [(1, None), (3, None), (2, "b"), (2, [1])]


def test_middle_has_the_first_options_and_the_first_options() -> None:
    first = space_of(FLAT).middle()

    assert space_of(FLAT).decode(first) == {
        "float": 0.0,
        "log": pytest.approx(1e-2),
        "step": 5.0,
        "integer": 2,
        "number": 64,
        "word": "b",
    }


def test_range_of_one_value_has_one_vector() -> None:
    space = space_of({"x": {"_type": "uniform", "_value": [3, 3]}})

    assert space.size == 1
    assert space.decode(space.middle()) == {"x": 3.0}


def test_duplicate_options_are_encoded_as_the_first_of_them() -> None:
    space = space_of({"x": {"_type": "choice", "_value": ["a", 1, 1.0, "a", "b"]}})

    vectors = space.all_vectors(10)

    assert vectors is not None
    assert [space.decode(vector)["x"] for vector in vectors] == ["a", 1, "b"]
    assert space.encode({"x": 1.0}).tolist() == space.encode({"x": 1}).tolist() == [1.0]


def test_branches_keep_their_options_beside_duplicates() -> None:
    branch = {"_name": "deep", "x": FLAT["float"]}
    space = space_of({"m": {"_type": "choice", "_value": ["a", "a", branch]}})

    configuration = {"m": {"_name": "deep", "x": 1.5}}

    assert space.decode(space.encode(configuration)) == configuration
    assert space.active(space.encode(configuration)[None, :]).all()


def test_sample_is_not_smaller_than_32_under_constraints() -> None:
    thin = {**CONSTRAINED, "_constraints": ["a + b <= 0.05"]}
    space = space_of(thin)

    sampled = space.sample(np.random.default_rng(0), 100)

    assert len(sampled) >= 32
    assert (sampled.sum(axis=1) <= 0.05).all()
    assert len(space.sample(np.random.default_rng(0), 7)) == 7


def test_filled_vectors_keep_active_coordinates_and_draw_the_others() -> None:
    space = space_of(SPACE)
    vectors = space.snap(space.sample_filled(np.random.default_rng(0), 50))
    active = space.active(vectors)

    filled = space.fill_inactive(vectors, np.random.default_rng(1))

    assert (filled[active] == vectors[active]).all()
    assert len(np.unique(filled[~active & space.ordered])) > 20
    assert space.snap(filled).tolist() == vectors.tolist()
