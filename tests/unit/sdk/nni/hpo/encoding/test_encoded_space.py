"""Search spaces, flat and with branches, as vectors."""

from random import Random

import numpy as np
import pytest

from nni.hpo.encoding.encoded_space import EncodedSpace, vector_key, vector_keys
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


def test_inactive_parameters_stand_in_the_middle_and_their_choices_have_no_option() -> None:
    space = space_of(SPACE)
    vector = space.encode({"model": NONE, "rate": 1e-3, "width": 8, "bell": 4, "step": 2})

    inactive = ~space.active(vector[None, :])[0]

    assert vector[inactive & space.ordered].tolist() == [0.5, 0.5]  # layers and slope
    assert vector[inactive & ~space.ordered].tolist() == [-1.0]  # act
    assert space.snap(vector[None, :])[0].tolist() == vector.tolist()


def test_each_axis_has_its_features_and_an_inactive_choice_has_none() -> None:
    branch = {"_name": "deep", "act": {"_type": "choice", "_value": ["p", "q"]}}
    space = space_of(
        {
            "w": FLAT["word"],
            "x": FLAT["float"],
            "n": FLAT["number"],
            "m": {"_type": "choice", "_value": ["a", branch]},
        }
    )
    option = np.sqrt(0.5)

    features = space.features(
        np.stack(
            [
                space.encode({"w": "b", "x": 1.0, "n": 16.5, "m": "a"}),
                space.encode({"w": [1], "x": -2.0, "n": 64, "m": {"_name": "deep", "act": "q"}}),
            ]
        )
    )

    assert [axis.path for axis in space.axes] == ["x", "w", "n", "m", "m/deep/act"]
    assert space.feature_axes.tolist() == [0, 1, 1, 1, 2, 3, 3, 4, 4]
    assert features.tolist() == [
        [0.75, option, 0, 0, 0.5, option, 0, 0, 0],
        [0.0, 0, 0, option, 1.0, 0, option, 0, option],
    ]


def test_one_branch_makes_a_space_of_no_known_size() -> None:
    branch = {"_name": "deep", "n": FLAT["integer"]}
    space = space_of({"m": {"_type": "choice", "_value": ["a", branch]}})

    assert space.has_branches
    assert space.size is None
    assert not space_of(FLAT).has_branches


def test_vectors_outside_are_clipped_to_the_ends_of_each_axis() -> None:
    space = space_of({"x": FLAT["float"], "i": FLAT["integer"], "w": FLAT["word"]})

    snapped = space.snap(np.array([[-0.4, -0.4, -3.0], [1.4, 1.4, 7.0], [0.3, 0.3, 1.4]]))

    assert snapped.tolist() == [[0.0, 0.125, 0.0], [1.0, 0.875, 2.0], [0.3, 0.375, 1.0]]


def test_space_without_parameters_has_one_empty_vector() -> None:
    space = space_of({})

    assert space.encode({}).shape == (0,)
    assert space.decode(space.encode({})) == {}


def test_sample_has_the_size_asked_for_where_all_is_allowed() -> None:
    assert space_of(FLAT).sample(np.random.default_rng(0), 7).shape == (7, len(FLAT))
    assert space_of(FLAT).sample(np.random.default_rng(0), 40).shape == (40, len(FLAT))


@pytest.mark.parametrize("seed", range(6))
def test_sample_of_one_is_never_empty_under_constraints(seed: int) -> None:
    sampled = space_of(CONSTRAINED).sample(np.random.default_rng(seed), 1)

    assert sampled.shape == (1, 2)
    assert sampled.sum() <= 1


def test_draws_of_a_normal_type_are_a_bell_around_the_middle() -> None:
    drawn = space_of({"x": SPACE["bell"]}).sample_filled(np.random.default_rng(0), 4000)

    # Standard errors at 4000 draws: of the mean 0.004, of the spread 0.003; five of them.
    assert abs(float(drawn.mean()) - 0.5) < 0.02
    assert abs(float(drawn.std()) - 0.25) < 0.015


@pytest.mark.parametrize(
    ("kind", "values", "size"),
    [
        ("randint", [0, 50_000], 50_000),
        ("randint", [0, 50_001], None),
        ("quniform", [1, 50_000, 1], 50_000),
        ("quniform", [1, 50_001, 1], None),
        ("quniform", [1, 10, 3], 4),
        ("quniform", [2, 10, 5], 3),
        ("randint", [7, 8], 1),
    ],
)
def test_axis_of_at_most_50_000_values_is_discrete(
    kind: str, values: list[float], size: int | None
) -> None:
    assert space_of({"x": {"_type": kind, "_value": values}}).size == size


def test_values_of_an_axis_are_the_coordinates_of_its_configurations() -> None:
    space = space_of({"i": FLAT["integer"], "s": FLAT["step"]})

    vectors = space.all_vectors(12)

    assert vectors is not None
    assert [space.encode(space.decode(vector)).tolist() for vector in vectors] == vectors.tolist()
    assert [space.decode(vector) for vector in vectors] == [
        {"i": i, "s": s} for i in (1, 2, 3, 4) for s in (2.0, 5.0, 10.0)
    ]


@pytest.mark.parametrize(("value", "around"), [(1, [2]), (2, [1, 3]), (4, [3])])
def test_value_at_an_end_has_one_neighbour(value: int, around: list[int]) -> None:
    space = space_of({"i": FLAT["integer"]})

    assert [space.decode(v)["i"] for v in space.neighbours(space.encode({"i": value}))] == around


def test_vectors_that_differ_by_rounding_have_one_key() -> None:
    vector = np.array([0.123456789, 1.0])

    assert vector_key(vector + 2e-10) == vector_key(vector)
    assert vector_keys([vector, vector + 2e-10, vector + 2e-9]) == {
        vector_key(vector),
        vector_key(vector + 2e-9),
    }
    assert len(vector_keys([vector, vector + 2e-9])) == 2


def test_draws_of_an_unordered_choice_are_its_options() -> None:
    drawn = space_of({"w": FLAT["word"]}).sample_filled(np.random.default_rng(0), 60)

    assert set(drawn.ravel().tolist()) == {0.0, 1.0, 2.0}


def test_only_value_of_a_range_is_in_the_middle_of_its_axis() -> None:
    space = space_of({"x": {"_type": "uniform", "_value": [3, 3]}})

    assert space.encode({"x": 3}).tolist() == [0.5]
    assert space.snap(np.array([[0.9]])).tolist() == [[0.5]]
    assert len(space.neighbours(np.array([0.5]))) == 0
