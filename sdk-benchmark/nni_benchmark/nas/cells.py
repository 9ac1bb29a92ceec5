"""Cells of NAS-Bench-201's space, numbered, and the features that a surrogate predicts from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nni.nas.benchmark.nasbench201.constants import (
    AVG_POOL_3X3,
    CONV_1X1,
    CONV_3X3,
    EDGES,
    NONE,
    PRIMITIVES,
    SKIP_CONNECT,
)

CELLS: Final = len(PRIMITIVES) ** len(EDGES)
"""Number of cells of the space: 15,625."""
_PATHS: Final = (("0_3",), ("0_1", "1_3"), ("0_2", "2_3"), ("0_1", "1_2", "2_3"))
"""Ways from the input of a cell to its output."""


def cell_of(number: int) -> dict[str, str]:
    """Decode a number to a cell, edge to operation: base-5 digits, lowest first, are operations.

    Args:
        number: 0 to 15,624.

    Raises:
        ValueError: the number is outside this range.

    Examples:
        >>> cell_of(1)["0_1"], cell_of(1)["2_3"]
        ('skip_connect', 'none')
    """
    if not 0 <= number < CELLS:
        raise ValueError(f"number must be from 0 to {CELLS - 1}, got {number}")
    cell = {}
    for edge in EDGES:
        number, digit = divmod(number, len(PRIMITIVES))
        cell[edge] = PRIMITIVES[digit]
    return cell


def number_of(cell: Mapping[str, str]) -> int:
    """Return the number of a cell; raise ValueError for a missing edge or unknown operation.

    Args:
        cell: edge, such as `0_1`, to operation.

    Raises:
        ValueError: an edge is missing, or has an unknown operation.

    Examples:
        >>> number_of(cell_of(4711))
        4711
    """
    number = 0
    for edge in reversed(EDGES):
        if cell.get(edge) not in PRIMITIVES:
            raise ValueError(
                f"cell[{edge!r}] must be one of {', '.join(PRIMITIVES)}, got {cell.get(edge)!r}"
            )
        number = number * len(PRIMITIVES) + PRIMITIVES.index(cell[edge])
    return number


def features_of(cell: Mapping[str, str]) -> NDArray[np.float64]:
    """Return a cell's 56 features: operations by used edge (one-hot), their counts, and paths.

    Edges that no open way uses count as `none`: the network is the same without them.

    Args:
        cell: edge to operation.

    Returns:
        `(FEATURES,)`.

    Examples:
        >>> features_of(cell_of(0)).sum().item()  # 6 edges are `none`
        6.0
    """
    open_ways = [way for way in _PATHS if all(cell[edge] != NONE for edge in way)]
    used = {edge for way in open_ways for edge in way}
    values = [
        float(operation == (cell[edge] if edge in used else NONE))
        for edge in EDGES
        for operation in PRIMITIVES
    ]
    values += [float(sum(cell[edge] == one for edge in used)) for one in PRIMITIVES[1:]]
    for way in _PATHS:
        values.extend(_features_of_way(cell, way, is_open=way in open_ways))
    convolutions = [sum(cell[edge] in {CONV_1X1, CONV_3X3} for edge in way) for way in open_ways]
    values += [float(len(open_ways)), float(max(convolutions, default=0))]
    return np.array(values)


def _features_of_way(
    cell: Mapping[str, str], way: tuple[str, ...], *, is_open: bool
) -> list[float]:
    if not is_open:
        return [0.0] * 5
    operations = [cell[edge] for edge in way]
    return [
        1.0,
        float(operations.count(CONV_3X3)),
        float(operations.count(CONV_1X1)),
        float(operations.count(AVG_POOL_3X3)),
        float(all(operation == SKIP_CONNECT for operation in operations)),
    ]


@cache
def all_features() -> NDArray[np.float64]:
    """Return the cached, read-only features of all 15,625 cells, a row for each, by number.

    Returns:
        `(CELLS, FEATURES)`; do not change it.

    Examples:
        >>> all_features().shape
        (15625, 56)
    """
    features = np.stack([features_of(cell_of(number)) for number in range(CELLS)])
    features.setflags(write=False)
    return features
