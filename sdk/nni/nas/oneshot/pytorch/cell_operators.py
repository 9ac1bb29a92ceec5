"""Operators of a cell, built anew for one place in it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from torch import nn

from nni.nas.nn.pytorch import Cell
from nni.nas.nn.pytorch.parametrized import placed_like


def is_built_by_input(cell: Cell) -> bool:
    """Return whether the operators of a cell are functions of the tensor that they read.

    Args:
        cell: unfrozen cell.

    Returns:
        True if a candidate is a function rather than a module.
    """
    return bool(vars(cell)["_indexed"])


def built_operators(cell: Cell, node: int, index: int, read: int) -> dict[str, nn.Module]:
    """Return new operators by name for one place in a cell, built by functions or copied.

    Args:
        cell: unfrozen cell.
        node: index of the node, counted from `num_predecessors`.
        index: index of the operator inside the node.
        read: index of the tensor that the operator reads.

    Returns:
        Operator by name of the candidate, in the mode and with the device and dtype of the cell.
    """
    found: Any = vars(cell)["trace_kwargs"]["op_candidates"]
    if callable(found) and not isinstance(found, nn.ModuleList | nn.ModuleDict):
        found = found()
    named = isinstance(found, Mapping | nn.ModuleDict)
    return {
        str(name): placed_like(
            copy.deepcopy(source) if isinstance(source, nn.Module) else source(node, index, read),
            cell,
        )
        for name, source in (found.items() if named else enumerate(found))
    }
