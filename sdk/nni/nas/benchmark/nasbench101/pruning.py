"""Pruning of cells of NAS-Bench-101: without vertices off the ways from input to output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

MAX_VERTICES: Final = 7
MAX_EDGES: Final = 9
"""Limits of the published space; edges count before pruning."""


def pruned(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample's cell, renumbered, without vertices off all paths; raise if there is none.

    Args:
        sample: `num_nodes`, and `op…` and `input…` of at least so many vertices.

    Returns:
        Architecture whose vertices are numbered anew.

    Raises:
        ValueError: no way leads from the input to the output.

    Examples:
        >>> pruned({"num_nodes": 4, "op1": "a", "op2": "b", "input1": [0], "input2": [0],
        ...         "input3": [2]})
        {'op1': 'b', 'input1': [0], 'input2': [1]}
    """
    vertices = sample["num_nodes"]
    sources = [[], *(list(sample[f"input{at}"]) for at in range(1, vertices))]
    used = _used(sources)
    if not used:
        raise ValueError(f"the cell must have a way from input to output, got {dict(sample)}")
    number = {vertex: at for at, vertex in enumerate(used)}
    operations = {f"op{number[at]}": sample[f"op{at}"] for at in used[1:-1]}
    inputs = {
        f"input{number[at]}": [number[source] for source in sorted(sources[at]) if source in number]
        for at in used[1:]
    }
    return operations | inputs


def is_valid(vertices: int, *inputs: Sequence[int]) -> bool:
    """Return whether a cell has at most 9 edges, and a way from input to output.

    Args:
        vertices: number of vertices.
        *inputs: sources of the vertices after the first; those beyond the number are ignored.

    Examples:
        >>> is_valid(3, [0], [1]), is_valid(3, [0], [])
        (True, False)
    """
    sources = [[], *(list(one) for one in inputs[: vertices - 1])]
    return sum(map(len, sources)) <= MAX_EDGES and bool(_used(sources))


def _used(sources: Sequence[Sequence[int]]) -> list[int]:
    """Return the vertices on paths from the first to the last one, in order; empty without any."""
    last = len(sources) - 1
    reached = {0}
    for vertex in range(1, last + 1):
        if reached & set(sources[vertex]):
            reached.add(vertex)
    needed = {last}
    for vertex in range(last, 0, -1):
        if vertex in needed:
            needed.update(sources[vertex])
    used = sorted(reached & needed)
    return used if last in used and 0 in used else []
