"""Choice of coupled-channel units to remove: the largest set that keeps equal rows equal.

A grouped convolution needs the same number of channels in every group, and two halves of a split
need equal widths. `balanced` adds units in the order of their scores. Each addition is completed
to a *bundle* that leaves every row of every balance with the same number of units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.slots import Flags, Ids

Counts = npt.NDArray[np.int64]
_MAX_BUNDLE = 4096


@dataclass(frozen=True, slots=True)
class Component:
    """Units that balances connect, with their counts by row and each row's removal limit."""

    units: Ids
    table: Counts
    """How often each unit (column) appears in each row of each balance."""
    starts: Counts
    """First row of each balance in `table`."""
    caps: Counts
    """Largest number that may be removed from each row."""


def components(balances: Sequence[Ids], sparsity: float = 1.0) -> list[Component]:
    """Return the sets of units that balances connect, directly or through others.

    Args:
        balances: Units by row.
        sparsity: Largest part of a row that may be removed.

    Returns:
        Components without a unit in common.

    Examples:
        >>> import numpy as np
        >>> from nni.compression.speedup.selection import components
        >>> [one.units.tolist() for one in components([np.array([[1, 2], [3, 4]])])]
        [[1, 2, 3, 4]]
    """
    return [_component([balances[one] for one in own], sparsity) for own in _linked(balances)]


def _linked(balances: Sequence[Ids]) -> list[list[int]]:
    """Return the indices of the balances, in one list for those that units connect."""
    owner: dict[int, int] = {}
    found: dict[int, list[int]] = {}
    for number, rows in enumerate(balances):
        units = np.unique(rows).tolist()
        merged = {owner[unit] for unit in units if unit in owner}
        own = [number]
        for other in merged:
            own += found.pop(other)
        found[number] = sorted(own)
        for other in found[number]:
            for unit in np.unique(balances[other]).tolist():
                owner[unit] = number
    return list(found.values())


def _component(balances: Sequence[Ids], sparsity: float) -> Component:
    units = np.unique(np.concatenate([rows.ravel() for rows in balances]))
    counts = []
    starts = [0]
    caps = []
    for rows in balances:
        table = np.zeros((len(rows), len(units)), dtype=np.int64)
        places = np.searchsorted(units, rows)
        for row, place in zip(table, places, strict=True):
            np.add.at(row, place, 1)
        counts.append(table)
        starts.append(starts[-1] + len(rows))
        caps += [int(rows.shape[1] * sparsity)] * len(rows)
    return Component(
        units, np.concatenate(counts), np.array(starts[:-1]), np.array(caps, dtype=np.int64)
    )


def _deficits(component: Component, counts: Counts) -> Counts:
    """Return by how many units each row has fewer than the fullest row of its balance.

    `counts` has the rows of the table on axis 0.
    """
    widths = np.diff(np.append(component.starts, len(component.table)))
    highest = np.maximum.reduceat(counts, component.starts, axis=0)
    found: Counts = np.repeat(highest, widths, axis=0) - counts
    return found


def balanced(
    component: Component,
    allowed: Flags,
    order: Sequence[int],
    limits: Mapping[int, int],
    deadline: Deadline | None = None,
) -> Ids:
    """Return units of a component to remove, chosen in order, that keep equal rows equal.

    Args:
        component: The units and the rows that must stay equal.
        allowed: By place in `component.units`: whether a unit may be removed.
        order: Places of units, the first to remove first.
        limits: Largest number to remove by row of the table, where it is below the cap.
        deadline: Instant after which no more units are added; None means no limit.

    Returns:
        The chosen units, sorted. Every row of a balance loses the same number.

    Examples:
        >>> import numpy as np
        >>> from nni.compression.speedup.selection import balanced, components
        >>> [component] = components([np.array([[1, 2], [3, 4]])])
        >>> balanced(component, np.array([True, True, True, False]), [0, 1, 2], {}).tolist()
        [1, 3]
    """
    caps = component.caps.copy()
    for row, limit in limits.items():
        caps[row] = min(caps[row], limit)
    free = allowed.copy()
    scores = np.full(len(component.units), len(order), dtype=np.int64)
    scores[list(order)] = np.arange(len(order))
    counts = np.zeros(len(component.table), dtype=np.int64)
    chosen: list[int] = []
    for first in order:
        if deadline is not None and deadline.passed():
            break
        if not free[first]:
            continue
        bundle = _bundle(component, free, scores, counts, caps, first)
        if bundle is None:
            free[first] = False
            continue
        chosen += bundle
        free[bundle] = False
        counts += component.table[:, bundle].sum(axis=1)
    return np.sort(component.units[chosen])


def _bundle(
    component: Component,
    free: Flags,
    scores: Counts,
    counts: Counts,
    caps: Counts,
    first: int,
) -> list[int] | None:
    """Return a set of free units with `first` that keeps all rows equal; None without one."""
    bundle = [first]
    left = free.copy()
    left[first] = False
    have = counts + component.table[:, first]
    for _ in range(min(_MAX_BUNDLE, len(free) + 1)):
        if (have > caps).any():
            return None
        lacking = _deficits(component, have)
        row = int(lacking.argmax())
        if lacking[row] == 0:
            return bundle
        places = np.flatnonzero(left & (component.table[row] > 0))
        if not len(places):
            return None
        after = have[:, None] + component.table[:, places]
        total = _deficits(component, after).sum(axis=0) + (after > caps[:, None]).sum(axis=0) * 1e6
        best = int(places[np.lexsort((scores[places], total))[0]])
        bundle.append(best)
        left[best] = False
        have += component.table[:, best]
    return None


def largest_balanced(
    balances: Sequence[Ids], wanted: Flags, deadline: Deadline | None = None
) -> Flags:
    """Return which of the wanted units can be removed without breaking a balance.

    Args:
        balances: Units by row.
        wanted: By unit: whether the unit is dead.
        deadline: Instant after which no more units are added; None means no limit.

    Returns:
        Flags by unit, a subset of `wanted`.

    Examples:
        >>> import numpy as np
        >>> from nni.compression.speedup.selection import largest_balanced
        >>> wanted = np.array([False, True, True, True, False])
        >>> np.flatnonzero(largest_balanced([np.array([[1, 2], [3, 4]])], wanted)).tolist()
        [1, 3]
    """
    found = wanted.copy()
    touched = [rows for rows in balances if wanted[rows].any()]
    if not touched:
        return found
    for component in components(balances):
        allowed = wanted[component.units]
        found[component.units] = False
        found[balanced(component, allowed, np.flatnonzero(allowed).tolist(), {}, deadline)] = True
    return found
