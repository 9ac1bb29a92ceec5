"""Graph of the operations of a model: nodes, values, and the modules in which they ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from nni.compression.speedup.size_arguments import SizedCall

Inputs = Tensor | Sequence[Any] | Mapping[str, Any]
"""One tensor, positional inputs, or inputs by name."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Reference to a value of the graph in the arguments of a node."""

    index: int


@dataclass(slots=True)
class Value:
    """Tensor of the recorded run: shape, and the name of a parameter or buffer that it is."""

    index: int
    shape: tuple[int, ...]
    floating: bool
    source: str | None = None
    """Name of the parameter or buffer, None for other tensors."""
    computed: bool = False
    """Whether a node writes the value; otherwise it is a parameter, a constant or an input."""
    data: Tensor | None = None
    """The integer tensor of a constant, which index operations read."""


@dataclass(slots=True)
class Node:
    """Operation of the recorded run: arguments, outputs, and the module that runs it."""

    index: int
    op: str
    """Qualified name of the operation without its overload, such as `aten.add`."""
    args: dict[str, Any]
    """Arguments by their names in the schema, defaults included; tensors are `Ref`."""
    outputs: list[int]
    module: str
    """Path of the innermost module whose forward was running."""
    pointwise: bool = False
    """Whether each output element depends on the input elements at its place only."""

    _inputs: tuple[int, ...] | None = field(default=None, init=False, repr=False, compare=False)

    def inputs(self) -> tuple[int, ...]:
        """Return the indices of the values among the arguments, in order."""
        if self._inputs is None:
            self._inputs = tuple(one for value in self.args.values() for one in _refs(value))
        return self._inputs

    def describe(self) -> str:
        """Return the operation and its module for a message."""
        return f"{self.op.removeprefix('aten.')} in {self.module or 'the model itself'}"


def _refs(value: object) -> Iterator[int]:
    if isinstance(value, Ref):
        yield value.index
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _refs(one)


@dataclass(slots=True)
class OperationGraph:
    """Operations of a model in the order of their execution."""

    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    """Values that the model returns."""
    inputs: list[int] = field(default_factory=list)
    calls: list[SizedCall] = field(default_factory=list)
    """Calls that take sizes, in the order of their execution."""
    runs: dict[str, int] = field(default_factory=dict)
    """How often each module ran."""
    training_heads: bool = False
    """Whether a second run, with heads that only training uses, follows the first one."""

    @property
    def sources(self) -> dict[str, int]:
        """Return the index of the value of each parameter and buffer by name."""
        return {value.source: value.index for value in self.values if value.source is not None}
