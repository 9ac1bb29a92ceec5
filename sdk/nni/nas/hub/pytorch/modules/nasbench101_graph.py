"""Graphs of NAS-Bench-101: which vertices count, and how many channels each has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MIN_VERTICES: Final = 2
"""Input and output."""


@dataclass(frozen=True, slots=True)
class NasBench101Graph:
    """Directed acyclic graph; vertex 0 is the input and the last one the output."""

    operations: tuple[Any, ...]
    """Names of the operations of the vertices between input and output."""
    inputs: tuple[tuple[int, ...], ...]
    """Earlier vertices that each vertex but the input reads, ascending; vertex 1 first."""

    @property
    def num_vertices(self) -> int:
        """Number of vertices, input and output included."""
        return len(self.inputs) + 1

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return sum(map(len, self.inputs))

    def as_dict(self) -> dict[str, Any]:
        """Return the architecture as a dict: `op1`… to names, `input1`… to lists of vertices.

        Returns:
            `op1`, `op2`, … to names and `input1`, `input2`, … to lists of vertices.
        """
        operations = {f"op{at}": name for at, name in enumerate(self.operations, 1)}
        return operations | {f"input{at}": list(read) for at, read in enumerate(self.inputs, 1)}


def graph_of(sample: Mapping[str, Any], prefix: str = "") -> NasBench101Graph:
    """Return the graph that the choices of a sample describe, not pruned.

    Args:
        sample: `num_nodes`, `op1`, … and `input1`, … by label.
        prefix: what precedes these names in labels.

    Returns:
        The graph of the first `num_nodes` vertices.

    Examples:
        >>> graph_of({"num_nodes": 3, "op1": "conv", "input1": [0], "input2": [0, 1]})
        NasBench101Graph(operations=('conv',), inputs=((0,), (0, 1)))
    """
    number = sample[f"{prefix}num_nodes"]
    return NasBench101Graph(
        tuple(sample[f"{prefix}op{at}"] for at in range(1, number - 1)),
        tuple(tuple(sorted(sample[f"{prefix}input{at}"])) for at in range(1, number)),
    )


def pruned(graph: NasBench101Graph) -> NasBench101Graph | None:
    """Return a renumbered graph of vertices on paths from input to output; None without a path.

    Args:
        graph: any graph.

    Returns:
        The remaining vertices, numbered anew in the same order; None if no path leads from input
        to output.

    Examples:
        >>> pruned(NasBench101Graph(("a", "b"), ((0,), (0,), (1,))))
        NasBench101Graph(operations=('a',), inputs=((0,), (1,)))
        >>> pruned(NasBench101Graph(("a",), ((0,), ()))) is None
        True
    """
    last = graph.num_vertices - 1
    from_input = {0}
    for vertex, read in enumerate(graph.inputs, 1):
        if from_input & set(read):
            from_input.add(vertex)
    to_output = {last}
    for vertex in range(last, 0, -1):
        if vertex in to_output:
            to_output |= set(graph.inputs[vertex - 1])
    kept = sorted(from_input & to_output)
    if len(kept) < MIN_VERTICES:
        return None
    number = {vertex: at for at, vertex in enumerate(kept)}
    return NasBench101Graph(
        tuple(graph.operations[vertex - 1] for vertex in kept[1:-1]),
        tuple(
            tuple(number[one] for one in graph.inputs[vertex - 1] if one in number)
            for vertex in kept[1:]
        ),
    )


def vertex_channels(
    in_channels: int, out_channels: int, inputs: Sequence[Sequence[int]]
) -> list[int]:
    """Return channels of each vertex of a pruned graph; the output's are split over its inputs.

    Vertices that the output concatenates share its channels; the first ones get the remainder. Any
    other vertex has as many as the largest one that reads it.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        inputs: earlier vertices that each vertex but the input reads.

    Returns:
        Channels, input and output included.

    Source: Ying et al., NAS-Bench-101, 2019, section 2.2.

    Examples:
        >>> vertex_channels(3, 8, [[0], [1], [1], [0, 2, 3]])
        [3, 4, 4, 4, 8]
    """
    last = len(inputs)
    channels = [in_channels, *[0] * (last - 1), out_channels]
    parts = [vertex for vertex in inputs[-1] if vertex != 0]
    for at, vertex in enumerate(parts):
        channels[vertex] = out_channels // len(parts) + (at < out_channels % len(parts))
    for vertex in range(last - 1, 0, -1):
        readers = [at for at in range(vertex + 1, last) if vertex in inputs[at - 1]]
        if vertex not in parts:
            channels[vertex] = max(channels[at] for at in readers)
    return channels
