"""Numbers of cells and channels in networks of normal and reduction cells."""

import itertools
from collections.abc import Sequence
from typing import Any, Final

from nni.mutable import MutableExpression

STAGES: Final = 3
"""Stages of cells at one resolution; a reduction cell begins each but the first."""


def stage_lengths(num_cells: int) -> list[int]:
    """Return the numbers of cells of the three stages, equal up to 1; later stages get the rest.

    Args:
        num_cells: number of all cells.

    Returns:
        Three numbers with that sum.

    Examples:
        >>> stage_lengths(8)
        [2, 3, 3]
    """
    ends = [stage * num_cells // STAGES for stage in range(STAGES + 1)]
    return [end - start for start, end in itertools.pairwise(ends)]


def stage_length(num_cells: Any, stage: int) -> Any:  # noqa: ANN401 - int, or an expression of one
    """Return how many cells one stage has, for a number that may be mutable.

    Args:
        num_cells: number of all cells.
        stage: 0, 1 or 2.

    Returns:
        An integer, or an expression of one.
    """
    return (stage + 1) * num_cells // STAGES - stage * num_cells // STAGES


def cell_channels(
    stage: int,
    index: int,
    num_cells: int,
    width: int,
    stem: int,
    normal: int,
    reduce: int,
) -> int:
    """Return a cell's number of output channels; negative indices lead to earlier stages.

    Args:
        stage: stage of the cell.
        index: position in the stage; negative numbers count from the end of the stage before.
        num_cells: number of all cells.
        width: channels of a node in the first stage; each further stage has twice as many.
        stem: channels of what precedes the cells.
        normal: nodes that the output of a normal cell concatenates.
        reduce: nodes that the output of a reduction cell concatenates.

    Returns:
        The number of channels.

    Examples:
        >>> cell_channels(1, -1, 3, 16, 48, 4, 2), cell_channels(1, 0, 3, 16, 48, 4, 2)
        (64, 64)
        >>> cell_channels(0, -1, 3, 16, 48, 4, 2)
        48
    """
    lengths = stage_lengths(num_cells)
    while index < 0:
        if stage == 0:
            return stem
        stage -= 1
        index += lengths[stage]
    nodes = reduce if stage > 0 and index == 0 else normal
    channels: int = width * 2**stage * nodes
    return channels


def count_loose_ends(num_predecessors: int, num_nodes: int, *inputs: Sequence[int]) -> int:
    """Return how many nodes of a cell no other node reads.

    Args:
        num_predecessors: number of inputs of the cell.
        num_nodes: number of nodes.
        *inputs: the tensors that operators read.

    Returns:
        A number of nodes, from 1.

    Examples:
        >>> count_loose_ends(2, 2, [0], [1], [2], [0])
        1
    """
    read = {tensor for tensors in inputs for tensor in tensors}
    return len(set(range(num_predecessors, num_predecessors + num_nodes)) - read)


def channels_of(*arguments: Any) -> Any:  # noqa: ANN401 - int, or an expression of one
    """Return `cell_channels` of arguments; an expression if some of them are mutable.

    Args:
        *arguments: those of `cell_channels`.

    Returns:
        An integer, or an expression of one.
    """
    if any(isinstance(one, MutableExpression) for one in arguments):
        return MutableExpression(cell_channels, arguments)
    return cell_channels(*arguments)
