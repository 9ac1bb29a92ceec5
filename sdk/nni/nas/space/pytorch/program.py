"""One graph as a program: members, and calls in the order of their execution.

The network that is executed and the source code that is exported both come from it.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from nni.nas.space.graph import Edge, Graph, IllegalGraphError, Node, inputs_of
from nni.nas.space.graph_op import (
    CHOSEN_INPUTS,
    FUNCTION_PREFIX,
    Cell,
    InputSlot,
    Operation,
    PyTorchOperation,
    filled,
    slots_of,
)
from nni.nas.space.inline_mutator import INPUT_CHOICE, LAYER_CHOICE, REPEAT

_RESERVED: Final = frozenset(keyword.kwlist) | {"self", "torch", "math", "operator"}
"""Names that no variable of generated code has."""
_NOT_IN_NAMES: Final = re.compile(r"\W")


@dataclass(frozen=True, slots=True)
class ProgramVariable:
    """Variable of a program, or one item of it."""

    name: str
    """Name in the generated code."""
    item: int | None = None
    """Position of the item; None for all of it."""


@dataclass(frozen=True, slots=True)
class ProgramMember:
    """Module that a program calls: its operation, and its original name."""

    operation: Operation
    """Unit or cell."""
    original: tuple[str, ...]
    """Parts of its name in the original module, relative to that of the program."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One call, and the variable that keeps its result."""

    target: str
    """Name of the variable."""
    node: str
    """Name of the node."""
    operation: Operation
    """What is called."""
    member: str | None
    """Name of the member that is called; None of functions."""
    args: list[Any]
    """Positional arguments: templates in which variables stand in place of slots."""
    kwargs: dict[str, Any]
    """Arguments by name."""


@dataclass(frozen=True, slots=True)
class Program:
    """Straight-line program of one module: inputs, members, calls and result."""

    name: str
    """Name of the graph, and of the class in generated code."""
    inputs: list[str]
    """Names of the arguments."""
    members: dict[str, ProgramMember]
    """Attribute to module."""
    statements: list[Statement]
    """Calls in the order of execution."""
    result: Any
    """Template of the result."""


def program_of(graph: Graph) -> Program:
    """Return the program of a graph; raise if a choice is left or an input is missing.

    Args:
        graph: graph without choices.

    Raises:
        IllegalGraphError: a choice is left, an input is missing, or the nodes form a cycle.
    """
    return _ProgramWriter(graph).written()


class _ProgramWriter:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._taken: set[str] = set()
        self._inputs = [self._variable(name) for name in graph.input_names]
        self._taken.update(_called_names(graph))
        self._variables: dict[Node, str] = {}
        self._members: dict[str, ProgramMember] = {}

    def written(self) -> Program:
        nodes = self._graph.topo_sort()[1:-1]
        for node in nodes:
            if node.operation.type in {LAYER_CHOICE, INPUT_CHOICE, REPEAT}:
                raise IllegalGraphError(
                    self._graph,
                    f"node {node.name!r} is a choice; freeze the space by a sample first",
                )
            self._variables[node] = self._variable(node.name)
        statements = [self._statement(node) for node in nodes]
        args, _ = self._call(self._graph.output_node, self._graph.output_node.call)
        result = args[0] if len(args) == 1 else tuple(args)
        return Program(self._graph.name, self._inputs, self._members, statements, result)

    def _statement(self, node: Node) -> Statement:
        operation = node.operation
        is_function = isinstance(operation, PyTorchOperation) and not operation.is_module
        has_template = is_function and "args" in operation.parameters
        args, kwargs = self._call(node, operation.parameters if has_template else node.call)
        member = None if is_function or operation.type == CHOSEN_INPUTS else self._member(node)
        return Statement(self._variables[node], node.name, operation, member, args, kwargs)

    def _call(self, node: Node, call: dict[str, Any] | None) -> tuple[list[Any], dict[str, Any]]:
        edges = inputs_of(node)
        template = call or {"args": [InputSlot(slot) for slot in edges], "kwargs": {}}
        slots = slots_of((template["args"], template["kwargs"]))
        absent = [slot for slot in slots if slot not in edges]
        if absent:
            raise IllegalGraphError(self._graph, f"node {node.name!r} has no input {absent[0]}")

        def value_of(slot: int) -> ProgramVariable:
            return self._source(edges[slot])

        return filled(template["args"], value_of), filled(template["kwargs"], value_of)

    def _source(self, edge: Edge) -> ProgramVariable:
        if edge.head is self._graph.input_node:
            position = edge.head_slot or 0
            if position >= len(self._inputs):
                raise IllegalGraphError(self._graph, f"the graph has no input {position}")
            return ProgramVariable(self._inputs[position])
        return ProgramVariable(self._variables[edge.head], edge.head_slot)

    def _member(self, node: Node) -> str:
        """Return the attribute of a node's module; nodes of one module and operation share it."""
        original = node.python_name or node.name
        prefix = f"{self._graph.python_name}."
        if self._graph.python_name and original.startswith(prefix):
            relative = original.removeprefix(prefix)
        else:
            relative = original
        member = ProgramMember(node.operation, tuple(relative.split(".")))
        for name in _candidate_names(plain_name(original), plain_name(node.name)):
            if self._members.setdefault(name, member).operation == node.operation:
                return name
        raise AssertionError("names of candidates do not end")

    def _variable(self, name: str) -> str:
        for free in _candidate_names(plain_name(name)):
            if free not in self._taken:
                self._taken.add(free)
                return free
        raise AssertionError("names of candidates do not end")


def _called_names(graph: Graph) -> Iterator[str]:
    """Yield the names by which generated code reaches functions: no variable may hide them."""
    for node in graph.hidden_nodes:
        if node.operation.type.startswith(FUNCTION_PREFIX):
            name = node.operation.type.removeprefix(FUNCTION_PREFIX)
            yield name.removeprefix("builtins.").split(".")[0]


def plain_name(name: str) -> str:
    """Return a name as an identifier: with two underscores in place of a dot.

    Args:
        name: name of a node or module.
    """
    plain = _NOT_IN_NAMES.sub("_", name.replace(".", "__"))
    return f"_{plain}" if plain[:1].isdigit() or plain in _RESERVED else plain


def _candidate_names(*names: str) -> Iterable[str]:
    """Yield names, then the last of them with numbers, without an end."""
    yield from names
    number = 0
    while True:
        number += 1
        yield f"{names[-1]}_{number}"


def cells_of(program: Program) -> list[str]:
    """Return the names of the graphs that a program needs, each once.

    Args:
        program: any program.
    """
    cells = (member.operation for member in program.members.values())
    return list(dict.fromkeys(one.cell_name for one in cells if isinstance(one, Cell)))
