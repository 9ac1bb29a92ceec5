"""Distances between architectures, against slow and obvious ways to find them."""

from itertools import permutations
from random import Random

import numpy as np
import pytest

from nni.hpo.tuners.network_morphism.edit_distance import (
    Outline,
    distances,
    least_assignment,
    outline_of,
)
from nni.hpo.tuners.network_morphism.graph import Graph
from nni.hpo.tuners.network_morphism.morphs import children, connected, deeper, default_graph, wider

FIRST = default_graph((8, 8, 3), 4, length=2, width=8)


def some_graphs() -> list[Graph]:
    rng, graphs = Random(1), [FIRST]
    while len(graphs) < 12:
        graphs += list(children(rng.choice(graphs), rng))
    return graphs


def aligned(left: Outline, right: Outline) -> float:
    """Return the cost of aligning the layers, one cell after the other."""
    table = [
        [float(i + j) for j in range(len(right.widths) + 1)] for i in range(len(left.widths) + 1)
    ]
    for i, (width, dense) in enumerate(zip(left.widths, left.dense, strict=True), 1):
        for j, (other, other_dense) in enumerate(zip(right.widths, right.dense, strict=True), 1):
            change = abs(width - other) / max(width, other) if dense == other_dense else 1.0
            table[i][j] = min(
                table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + change
            )
    return table[-1][-1]


def test_layers_are_aligned_as_cheaply_as_possible() -> None:
    outlines = [outline_of(graph) for graph in some_graphs()]
    bare = [Outline(one.dense, one.widths, ()) for one in outlines]

    for one in bare:
        assert distances(one, bare).tolist() == pytest.approx([aligned(one, o) for o in bare])


def test_a_distance_is_the_same_both_ways_and_nothing_from_itself() -> None:
    outlines = [outline_of(graph) for graph in some_graphs()]

    table = [distances(outline, outlines).tolist() for outline in outlines]

    for i, row in enumerate(table):
        assert row[i] == 0.0
        assert row == pytest.approx([other[i] for other in table])


def test_each_morph_has_its_cost() -> None:
    start = [outline_of(FIRST)]
    wide, skip = wider(FIRST, 1, 16), connected(FIRST, 3, 7, "Add")
    assert wide is not None
    assert skip is not None

    assert distances(outline_of(deeper(FIRST, 5, 3)), start).tolist() == [1.0]
    assert distances(outline_of(wide), start).tolist() == [0.5]
    assert distances(outline_of(skip), start).tolist() == [1.0]


@pytest.mark.parametrize("size", [(1, 1), (2, 4), (4, 4), (3, 5)])
def test_least_assignment_is_the_least(size: tuple[int, int]) -> None:
    rng = Random(size[0])
    for _ in range(20):
        costs = [[rng.randint(0, 9) / 10 for _ in range(size[1])] for _ in range(size[0])]
        least = min(
            sum(costs[row][column] for row, column in enumerate(columns))
            for columns in permutations(range(size[1]), size[0])
        )

        assert least_assignment(costs) == pytest.approx(least)


def test_nothing_costs_nothing_to_assign() -> None:
    assert least_assignment([]) == 0.0


@pytest.mark.parametrize(
    ("one", "other", "cost"),
    [
        (("Add", 2, 3), ("Add", 2, 3), 0.0),
        (("Add", 2, 3), ("Add", 3, 5), 3 / 8),
        (("Add", 3, 5), ("Add", 4, 2), 4 / 9),
        (("Add", 0, 0), ("Add", 0, 1), 1.0),
        (("Add", 2, 3), ("Other", 2, 3), 1.0),
    ],
)
def test_a_connection_is_moved_in_proportion_to_its_place_and_length(
    one: tuple[str, int, int], other: tuple[str, int, int], cost: float
) -> None:
    layers = np.array([False]), np.array([4.0])
    left, right = Outline(*layers, (one,)), Outline(*layers, (other,))
    more = Outline(*layers, (other, ("Concatenate", 9, 9)))

    assert distances(left, [right]).tolist() == pytest.approx([cost])
    assert distances(left, [more]).tolist() == pytest.approx([cost + 1])
    assert distances(more, [left]).tolist() == pytest.approx([cost + 1])


def test_outline_has_the_layers_with_weights_and_the_skip_connections_between_them() -> None:
    skip, merged = connected(FIRST, 3, 7, "Add"), connected(FIRST, 3, 7, "Concatenate")
    assert skip is not None
    assert merged is not None

    outlines = [outline_of(graph) for graph in (FIRST, skip, merged)]

    assert [one.widths.tolist() for one in outlines] == [
        [8, 8, 8, 4],
        [8, 8, 8, 4],
        [8, 8, 8, 8, 4],
    ]
    assert [one.dense.tolist() for one in outlines] == [
        [False, False, True, True],
        [False, False, True, True],
        [False, False, False, True, True],
    ]
    # From behind the first of these layers to behind the second one.
    assert [one.connections for one in outlines] == [
        (),
        (("Add", 1, 1),),
        (("Concatenate", 1, 1),),
    ]


def test_there_are_no_distances_from_nothing() -> None:
    assert distances(outline_of(FIRST), []).tolist() == []


def test_layers_of_another_kind_cost_as_much_as_new_ones() -> None:
    dense = Outline(np.array([True, True]), np.array([4.0, 8.0]), ())
    others = [
        Outline(np.array([False, True]), np.array([4.0, 8.0]), ()),
        Outline(np.array([True]), np.array([8.0]), ()),
        Outline(np.array([True, True, True]), np.array([4.0, 8.0, 8.0]), ()),
        Outline(np.array([True, True]), np.array([4.0, 10.0]), ()),
    ]

    assert distances(dense, others).tolist() == pytest.approx([1.0, 1.0, 1.0, 0.2])
