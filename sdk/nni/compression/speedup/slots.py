"""Index labels of tensors: which elements of an axis are removed together.

A *slot* is a number that stands for one index of one axis. A tensor has a *block* for each axis
that can shrink: an integer array with a slot for every index of that axis. If the slots differ
from row to row, as after `(C,) -> (groups, C / groups)`, the array spans the row axes too; it has
size 1 on all other axes. Operations that only move elements are applied to the array itself.
Slots whose elements must be removed together are united; each set is a *unit*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Block:
    """Ids of the slots along one axis of a tensor, possibly different ones by row of other axes."""

    axis: int
    ids: Ids
    """One axis per axis of the tensor: of its size on `axis` and on row axes, else of size 1."""

    def rows(self) -> list[int]:
        """Return the axes of size > 1 besides `axis`, along which the slots may differ."""
        return [one for one, size in enumerate(self.ids.shape) if size > 1 and one != self.axis]

    def flat(self) -> Ids:
        """Return the slots by row: shape (rows, size of the axis)."""
        return np.moveaxis(self.ids, self.axis, -1).reshape(-1, self.ids.shape[self.axis])


class Slots:
    """Union-find structure over slots; all operations take arrays.

    Examples:
        >>> from nni.compression.speedup.slots import Slots
        >>> slots = Slots()
        >>> left, right = slots.new(3), slots.new(3)
        >>> slots.unite(left, right)
        >>> bool((slots.find(left) == slots.find(right)).all())
        True
    """

    def __init__(self) -> None:
        self._parent: Ids = np.zeros(1024, dtype=np.int64)
        self.count = 0

    def new(self, count: int) -> Ids:
        """Return new slots, each a unit of its own.

        Args:
            count: How many.

        Returns:
            Consecutive numbers, each a unit of its own.
        """
        first, self.count = self.count, self.count + count
        while self.count > len(self._parent):
            self._parent = np.concatenate([self._parent, np.zeros_like(self._parent)])
        found = np.arange(first, self.count, dtype=np.int64)
        self._parent[first : self.count] = found
        return found

    def find(self, ids: Ids) -> Ids:
        """Return the representative of each slot's unit.

        Args:
            ids: Slots in an array of any shape.

        Returns:
            An array of the same shape.
        """
        roots = self._parent[ids]
        while True:
            above = self._parent[roots]
            if np.array_equal(above, roots):
                return roots
            roots = above

    def unite(self, left: Ids, right: Ids) -> None:
        """Unite the units of slots at the same place of two arrays.

        Args:
            left: Slots.
            right: Slots, of a shape that broadcasts with `left`.
        """
        if left is right:
            return
        pairs = np.broadcast_arrays(left, right)
        first, second = pairs[0].ravel(), pairs[1].ravel()
        while True:
            low, high = self.find(first), self.find(second)
            differ = low != high
            if not differ.any():
                return
            first, second = low[differ], high[differ]
            low, high = np.minimum(first, second), np.maximum(first, second)
            np.minimum.at(self._parent, high, low)

    def roots(self) -> Ids:
        """Return the representative of every slot."""
        return self.find(np.arange(self.count, dtype=np.int64))


def lifted(block: Block, rank: int) -> Block:
    """Return a block with leading axes of size 1, as broadcasting adds them."""
    missing = rank - block.ids.ndim
    return Block(block.axis + missing, block.ids.reshape((1,) * missing + block.ids.shape))


def compressed(block: Block) -> Block:
    """Return a block without the row axes on which its slots are equal."""
    ids = block.ids
    if ids.size == ids.shape[block.axis]:
        return block
    for axis in block.rows():
        first = ids.take([0], axis=axis)
        if (ids == first).all():
            ids = first
    return Block(block.axis, ids)


def permuted(block: Block, order: Sequence[int]) -> Block:
    """Return a block after a permutation of the axes."""
    return Block(list(order).index(block.axis), block.ids.transpose(order))


def axis_groups(
    before: Sequence[int], after: Sequence[int]
) -> list[tuple[list[int], list[int]]] | None:
    """Return which axes of two shapes hold the same elements; None if the shapes do not fit.

    Axes of size 1 belong to no group.

    Examples:
        >>> from nni.compression.speedup.slots import axis_groups
        >>> axis_groups((2, 12, 5), (2, 3, 4, 5))
        [([0], [0]), ([1], [1, 2]), ([2], [3])]
    """
    left = [axis for axis, size in enumerate(before) if size != 1]
    right = [axis for axis, size in enumerate(after) if size != 1]
    groups = []
    while left or right:
        if not left or not right:
            return None
        ins, outs = [left.pop(0)], [right.pop(0)]
        while (have := _product(before, ins)) != (want := _product(after, outs)):
            if have < want and left:
                ins.append(left.pop(0))
            elif have > want and right:
                outs.append(right.pop(0))
            else:
                return None
        groups.append((ins, outs))
    return groups


def _product(shape: Sequence[int], axes: Iterable[int]) -> int:
    found = 1
    for axis in axes:
        found *= shape[axis]
    return found


def regrouped(
    ids: Ids,
    before: Sequence[int],
    after: Sequence[int],
    groups: Sequence[tuple[list[int], list[int]]],
) -> Ids:
    """Return the slots after a reshape.

    Args:
        ids: Slots over the axes of `before`, size 1 where they do not differ.
        before: Shape of the tensor.
        after: Shape after the reshape.
        groups: What `axis_groups` returned.

    Returns:
        Slots over the axes of `after`, size 1 on all axes of groups in which they do not differ.
    """
    full = [1] * len(before)
    shape = [1] * len(after)
    for ins, outs in groups:
        if any(ids.shape[axis] > 1 for axis in ins):
            for axis in ins:
                full[axis] = before[axis]
            for axis in outs:
                shape[axis] = after[axis]
    return np.ascontiguousarray(np.broadcast_to(ids, full)).reshape(shape)
