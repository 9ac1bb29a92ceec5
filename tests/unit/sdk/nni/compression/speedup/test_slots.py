"""Union-find over arrays of slots, and their moves."""

import numpy as np
import pytest

from nni.compression.speedup.slots import (
    Block,
    Slots,
    axis_groups,
    compressed,
    lifted,
    permuted,
    regrouped,
)


def test_units_are_the_closure_of_all_unions() -> None:
    slots = Slots()
    ids = slots.new(2000)

    slots.unite(ids[:-1], ids[1:])

    assert len(np.unique(slots.find(ids))) == 1
    assert (slots.roots() == 0).all()


def test_unions_broadcast() -> None:
    slots = Slots()
    rows, column = slots.new(6).reshape(2, 3), slots.new(3)

    slots.unite(rows, column)

    assert len(np.unique(slots.find(rows))) == 3


def test_conflicting_unions_in_one_call_are_all_kept() -> None:
    slots = Slots()
    slots.new(5)

    slots.unite(np.array([4, 4, 4]), np.array([1, 2, 3]))

    assert len({int(slots.find(np.array(one))) for one in (1, 2, 3, 4)}) == 1


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((2, 6), (2, 2, 3), [([0], [0]), ([1], [1, 2])]),
        ((2, 3, 4), (2, 12), [([0], [0]), ([1, 2], [1])]),
        ((1, 4, 1), (4,), [([1], [0])]),
        ((6, 4), (4, 6), [([0, 1], [0, 1])]),
        ((4,), (3,), None),
    ],
)
def test_axes_of_reshapes_are_matched(
    before: tuple[int, ...], after: tuple[int, ...], expected: object
) -> None:
    assert axis_groups(before, after) == expected


def test_slots_follow_a_reshape() -> None:
    ids = np.arange(4).reshape(1, 4, 1)
    groups = axis_groups((2, 4, 3), (2, 12))
    assert groups is not None

    found = regrouped(ids, (2, 4, 3), (2, 12), groups)

    assert found.tolist() == [[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]]


def test_equal_rows_are_dropped() -> None:
    block = Block(1, np.array([[1, 2], [1, 2]]))

    assert compressed(block).ids.tolist() == [[1, 2]]
    assert compressed(Block(1, np.array([[1, 2], [3, 4]]))).rows() == [0]


def test_axes_are_moved() -> None:
    block = Block(1, np.arange(3).reshape(1, 3))

    assert lifted(block, 3).axis == 2
    assert permuted(block, [1, 0]).axis == 0
    assert permuted(block, [1, 0]).flat().tolist() == [[0, 1, 2]]
