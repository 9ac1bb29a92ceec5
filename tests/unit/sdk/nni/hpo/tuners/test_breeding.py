"""Children of two vectors."""

import numpy as np

from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._breeding import child_of
from tests.support.search_spaces import NESTED

FLAT = {f"x{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(6)}


def test_children_are_points_of_the_space_also_of_different_branches() -> None:
    space = EncodedSpace(parse_space(NESTED))
    rng = np.random.default_rng(0)

    for _ in range(100):
        parents = space.snap(space.sample_filled(rng, 2))
        child = child_of(space, parents, rng)
        assert np.allclose(space.encode(space.decode(child)), child, atol=1e-9)


def test_a_child_lies_near_its_parents_and_is_neither() -> None:
    space = EncodedSpace(parse_space(FLAT))
    rng = np.random.default_rng(1)
    parents = np.stack([np.full(6, 0.2), np.full(6, 0.3)])

    children = np.array([child_of(space, parents, rng) for _ in range(200)])

    assert abs(np.median(children) - 0.2) < 0.02
    assert np.quantile(np.abs(children - 0.25), 0.9) < 0.2
    assert not (children == parents[0]).all(axis=1).any()
