"""Initial designs."""

import json
from collections import Counter

import numpy as np
import pytest

from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.json_value import JsonValue
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.initial_design import (
    LatinHypercubeDesign,
    RandomDesign,
    latin_hypercube,
)

NUMBER = {"_type": "uniform", "_value": [-1, 3]}
KIND = {"_type": "choice", "_value": ["a", "b", "c"]}
BRANCH = {"_type": "choice", "_value": [{"_name": "flat"}, {"_name": "deep", "x": NUMBER}]}


def space_of(search_space: JsonValue) -> EncodedSpace:
    return EncodedSpace(parse_space(search_space))


FLAT = space_of({"x": NUMBER, "y": NUMBER, "kind": KIND})


@pytest.mark.parametrize(("axes", "size"), [(1, 5), (2, 5), (3, 7), (4, 9), (9, 10)])
def test_size_grows_with_the_axes(axes: int, size: int) -> None:
    space = space_of({f"x{index}": NUMBER for index in range(axes)})

    assert len(latin_hypercube(space, np.random.default_rng(0))) == size


def test_every_cell_of_an_axis_is_used_once() -> None:
    space = space_of({"x": NUMBER, "y": NUMBER, "model": BRANCH})

    vectors = latin_hypercube(space, np.random.default_rng(0))

    y = next(index for index, axis in enumerate(space.axes) if axis.path == "y")
    assert sorted(np.floor(vectors[:, y] * len(vectors)).tolist()) == list(range(len(vectors)))


def test_options_are_used_evenly() -> None:
    space = space_of({"kind": KIND, "other": KIND, "x": NUMBER, "y": NUMBER})

    vectors = latin_hypercube(space, np.random.default_rng(0))

    assert Counter(space.decode(vector)["kind"] for vector in vectors) == {"a": 3, "b": 3, "c": 3}


def test_first_vector_of_a_flat_space_is_the_middle() -> None:
    first = FLAT.decode(latin_hypercube(FLAT, np.random.default_rng(0))[0])

    assert (first["x"], first["y"]) == (1.0, 1.0)


def test_first_vector_lies_anywhere_where_there_are_branches() -> None:
    space = space_of({"y": NUMBER, "model": BRANCH})

    first = space.decode(latin_hypercube(space, np.random.default_rng(0))[0])

    assert first["y"] != 1.0


def test_widest_of_twenty_hypercubes_is_taken() -> None:
    space = space_of({"x": NUMBER, "y": NUMBER, "z": NUMBER})
    plain = np.random.default_rng(5).random((200, 7, 3))

    def least(shares: object) -> float:
        gaps = np.linalg.norm(np.asarray(shares)[:, None] - np.asarray(shares)[None], axis=-1)
        return float(gaps[np.triu_indices(len(gaps), 1)].min())

    found = [least(latin_hypercube(space, np.random.default_rng(seed))[1:]) for seed in range(20)]

    assert min(found) > np.median([least(shares[1:]) for shares in plain])


def test_space_without_axes_has_an_empty_design() -> None:
    design = LatinHypercubeDesign()

    design.reset(space_of({}), np.random.default_rng(0))

    assert design.size == 0
    assert design.is_complete(0)


def test_design_is_empty_before_there_is_a_space() -> None:
    design = LatinHypercubeDesign()

    assert design.size == 0
    assert design.is_complete(0)
    assert design.next_vector() is None
    assert design.state() == {"design": [], "handed_out": 0}


def test_design_is_complete_after_as_many_results() -> None:
    design = LatinHypercubeDesign()
    design.reset(FLAT, np.random.default_rng(0))

    assert [design.is_complete(count) for count in (0, 5, 6, 7, 20)] == [False] * 3 + [True] * 2


def test_design_is_complete_after_five_results_once_all_vectors_were_proposed() -> None:
    design = LatinHypercubeDesign()
    design.reset(FLAT, np.random.default_rng(0))
    vectors = [design.next_vector() for _ in range(7)]

    assert all(vector is not None for vector in vectors)
    assert design.next_vector() is None
    assert [design.is_complete(count) for count in (4, 5)] == [False, True]


def test_design_goes_on_from_its_state() -> None:
    first, second = LatinHypercubeDesign(), LatinHypercubeDesign()
    first.reset(FLAT, np.random.default_rng(0))
    second.reset(FLAT, np.random.default_rng(1))
    first.next_vector()

    second.load_state({**json.loads(json.dumps(first.state())), "other": 1})

    left, right = first.next_vector(), second.next_vector()
    assert left is not None
    assert right is not None
    assert left.tolist() == right.tolist()
    assert second.size == first.size


def test_random_design_is_draws_until_there_are_enough_results() -> None:
    design = RandomDesign(3)
    design.reset(FLAT, np.random.default_rng(0))

    assert design.next_vector() is None
    assert design.size == 3
    assert [design.is_complete(count) for count in (2, 3)] == [False, True]
    assert design.state() == {}


def test_hypercube_begins_with_the_expected_configuration_and_follows_priors_by_halves() -> None:
    prior = {"value": 0, "confidence": "high"}
    space = space_of(
        {"x": {**NUMBER, "_prior": prior}, "y": NUMBER, "kind": {**KIND, "_prior": {"value": "c"}}}
    )

    vectors = latin_hypercube(space, np.random.default_rng(0))

    free = latin_hypercube(FLAT, np.random.default_rng(0))
    first, *others = map(space.decode, vectors)
    assert first == {"x": pytest.approx(0), "y": pytest.approx(1), "kind": "c"}
    assert vectors[1::2].tolist() == free[1::2].tolist()
    # Within four deviations of the prior, but for one in twenty: the third, fifth and seventh.
    assert sum(abs(one["x"]) < 0.8 for one in others[1::2]) >= 2
