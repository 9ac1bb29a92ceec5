"""Children of two vectors."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
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


def test_a_child_of_equal_parents_has_few_coordinates_changed_and_one_at_least() -> None:
    space = EncodedSpace(parse_space(FLAT))
    rng, count = np.random.default_rng(2), 400
    parents = np.full((2, 6), 0.5)

    children = np.array([child_of(space, parents, rng) for _ in range(count)])

    changed = (children != 0.5).sum(axis=1)
    assert changed.min() >= 1
    # Each coordinate changes with 1 - (1 - 1 / 6) ** 2: 11 / 6 on average. The standard deviation
    # of a count is at most 1.2, of the mean of 400 it is 0.06; four of them.
    assert abs(changed.mean() - 11 / 6) < 0.24
    # Half of the mutations are smaller than 1 - 0.5 ** (1 / 21) = 0.032, either way alike.
    moves = children[children != 0.5] - 0.5
    assert abs(np.median(np.abs(moves)) - 0.032) < 0.008
    assert abs((moves > 0).mean() - 0.5) < 0.08


def test_a_child_takes_some_coordinates_from_the_second_parent() -> None:
    space = EncodedSpace(parse_space(FLAT))
    rng, count = np.random.default_rng(3), 400
    parents = np.stack([np.full(6, 0.1), np.full(6, 0.9)])

    children = np.array([child_of(space, parents, rng) for _ in range(count)])

    # Crossover at 0.9, half of the coordinates take part, half of those are nearer to the second:
    # 0.225. The standard deviation of the share of 400 children with all coordinates alike would
    # be 0.021; four of them.
    assert abs((children > 0.5).mean() - 0.225) < 0.084
    assert ((children >= 0) & (children <= 1)).all()
    # Half of the spreads are smaller than 1 / 2 ** (1 / 11) or greater than its inverse: 0.4 times
    # 0.061 or 0.065 of the distance from the middle.
    crossed = np.abs(children - np.where(children > 0.5, 0.9, 0.1))
    assert 0.015 < np.quantile(crossed[crossed > 1e-9], 0.5) < 0.04


def test_an_option_comes_from_a_parent_or_from_a_draw() -> None:
    names = [f"c{i}" for i in range(6)]
    space = EncodedSpace(
        parse_space({name: {"_type": "choice", "_value": list("abcd")} for name in names})
    )
    rng = np.random.default_rng(4)
    parents = np.stack([np.zeros(6), np.ones(6)])

    children = np.array([child_of(space, parents, rng) for _ in range(400)])

    # Crossover at 0.9 takes half of the second parent's; a sixth or a little more is drawn anew.
    second, others = (children == 1).mean(), (children > 1).mean()
    assert abs(second - 0.41) < 0.08
    assert 0.05 < others < 0.16


def test_crossed_coordinates_lie_around_a_parent_on_both_sides() -> None:
    space = EncodedSpace(parse_space(FLAT))
    rng = np.random.default_rng(5)
    parents = np.stack([np.full(6, 0.3), np.full(6, 0.7)])

    children = np.array([child_of(space, parents, rng) for _ in range(400)])

    inside = ((children > 0.3) & (children < 0.7)).mean()
    outside = ((children < 0.3) | (children > 0.7)).mean()
    # Crossover at 0.9, half of the coordinates take part, half of the spreads are below 1.
    assert abs(inside - 0.225) < 0.12
    assert abs(outside - 0.225) < 0.12
    assert ((children > 0.45) & (children < 0.55)).mean() < 0.02


def test_mutations_near_a_bound_stay_inside_without_being_cut_off() -> None:
    space = EncodedSpace(parse_space(FLAT))
    rng = np.random.default_rng(7)

    children = np.array([child_of(space, np.full((2, 6), 0.02), rng) for _ in range(200)])

    assert children.min() > 0.0
    assert 0.3 < (children[children != 0.02] > 0.02).mean() < 0.9


def distance_from_uniform(shares: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance of a sample from the uniform distribution."""
    ordered, count = np.sort(shares), len(shares)
    steps = np.arange(count + 1) / count
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


@pytest.mark.parametrize("place", [0.02, 0.5, 0.98])
def test_mutations_have_the_bounded_polynomial_distribution_of_index_20(place: float) -> None:
    space = EncodedSpace(parse_space({"x": FLAT["x0"]}))
    rng = np.random.default_rng(8)

    children = np.array([child_of(space, np.full((2, 1), place), rng)[0] for _ in range(500)])

    # Inverse of the formula of Deb and Goyal, with the distances from both bounds.
    below, above = (1 - place) ** 21, place**21
    shares = np.where(
        children < place,
        ((1 + children - place) ** 21 - below) / (2 * (1 - below)),
        (2 - above - (1 - children + place) ** 21) / (2 * (1 - above)),
    )
    assert distance_from_uniform(shares) < 1.63 / 500**0.5  # 1 % of samples are farther


def test_crossed_coordinates_have_the_distribution_of_simulated_binary_crossover() -> None:
    names = [f"x{i}" for i in range(200)]
    space = EncodedSpace(parse_space(dict.fromkeys(names, FLAT["x0"])))
    rng = np.random.default_rng(9)
    parents = np.stack([np.full(200, 0.4), np.full(200, 0.6)])

    children = np.array([child_of(space, parents, rng) for _ in range(100)])

    crossed = (children != 0.4).sum(axis=1) > 20
    assert 0.8 < crossed.mean() < 0.99  # 0.9, less or more three standard deviations of 0.03
    moved = children[crossed] != 0.4
    assert abs(moved.mean() - 0.5) < 0.02
    spreads = np.abs(children[crossed][moved] - 0.5) / 0.1
    shares = np.where(spreads <= 1, 0.5 * spreads**11, 1 - 0.5 * spreads**-11)
    # 1 % of the coordinates are mutated.
    assert distance_from_uniform(shares) < 0.03
