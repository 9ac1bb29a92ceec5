"""Network of a graph model: modules that execute the programs of its graphs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from nni.nas.space.graph_op import (
    ATTRIBUTE_PREFIX,
    CHOSEN_INPUTS,
    METHOD_PREFIX,
    POSITIONAL,
    Cell,
    Operation,
    PyTorchOperation,
    TrainingMode,
)
from nni.nas.space.pytorch.functions import function_of
from nni.nas.space.pytorch.program import Program, ProgramVariable, Statement
from nni.nas.utils.importable_names import import_
from nni.nas.utils.original_names import record_name

Call = Callable[..., Any]


def build_network(programs: Mapping[str, Program], name: str) -> GraphNetwork:
    """Construct the network of a program and of those that it calls, with fresh weights.

    Args:
        programs: programs by name.
        name: name of the outermost one.

    Raises:
        TypeError: a parameter does not fit the constructor of a module.
    """
    program = programs[name]
    members: dict[str, nn.Module] = {}
    for attribute, member in program.members.items():
        operation = member.operation
        made = (
            build_network(programs, operation.cell_name)
            if isinstance(operation, Cell)
            else build_unit(operation)
        )
        record_name(made, *member.original)
        members[attribute] = made
    return GraphNetwork(program, members)


def build_unit(operation: Operation) -> nn.Module:
    """Construct a new module of an operation, whose class is imported.

    Args:
        operation: that of a unit.

    Raises:
        TypeError: a parameter does not fit the constructor of the module.
    """
    symbol = import_(_symbol(operation))
    kwargs = dict(operation.parameters)
    args = kwargs.pop(POSITIONAL, [])
    made: nn.Module = symbol(*args, **kwargs)
    return made


class GraphNetwork(nn.Module):
    """Module that executes a program.

    Args:
        program: what to execute.
        members: modules that it calls.

    Attributes:
        observer: called with the node, its inputs and its output after each call; None for nothing.
    """

    def __init__(self, program: Program, members: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self._program = program
        self.observer: Callable[[str, Any, Any], None] | None = None
        for name, member in members.items():
            self.add_module(name, member)
        self._steps = [_step(statement) for statement in program.statements]

    def forward(self, *inputs: Any, **named: Any) -> Any:  # noqa: ANN401 - those of the program
        """Execute the program and return its result; raise TypeError unless all inputs are given.

        Args:
            *inputs: arguments in the order of the inputs.
            **named: arguments by name.

        Returns:
            The result.

        Raises:
            TypeError: the arguments are not the inputs of the graph.
        """
        values: dict[str, Any] = {**dict(zip(self._program.inputs, inputs, strict=False)), **named}
        if len(inputs) + len(named) != len(values) or len(values) != len(self._program.inputs):
            raise TypeError(
                f"graph {self._program.name!r} takes the inputs {self._program.inputs}, got "
                f"{len(inputs)} by position and {sorted(named)} by name; an argument of forward "
                "that has a default is no input of the graph"
            )
        for step in self._steps:
            args, kwargs = self._bound(step.args, values), self._bound(step.kwargs, values)
            call: Any = step.function if step.member is None else self._modules[step.member]
            values[step.target] = call(*args, **kwargs)
            if self.observer is not None:
                self.observer(step.node, [*args, *kwargs.values()], values[step.target])
        return self._bound(self._program.result, values)

    @property
    def graph_name(self) -> str:
        """Name of the graph that the program comes from."""
        return self._program.name

    def _bound(self, template: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a template
        match template:
            case ProgramVariable(name, item):
                return values[name] if item is None else values[name][item]
            case TrainingMode():
                return self.training
            case list() | tuple():
                return type(template)(self._bound(one, values) for one in template)
            case dict():
                return {key: self._bound(one, values) for key, one in template.items()}
            case slice():
                ends = (template.start, template.stop, template.step)
                return slice(*(self._bound(one, values) for one in ends))
        return template

    def _get_name(self) -> str:
        return self._program.name


@dataclass(frozen=True, slots=True)
class _Step:
    """Statement of a program whose function is found, ready to be executed."""

    target: str
    node: str
    member: str | None
    function: Call | None
    args: list[Any]
    kwargs: dict[str, Any]


def _step(statement: Statement) -> _Step:
    function = None if statement.member is not None else _function(statement.operation)
    return _Step(
        statement.target,
        statement.node,
        statement.member,
        function,
        statement.args,
        statement.kwargs,
    )


def _function(operation: Operation) -> Call:
    if operation.type == CHOSEN_INPUTS:
        return _Reduction(operation.parameters["chosen"], operation.parameters["reduction"])
    symbol = _symbol(operation)
    if operation.type.startswith(METHOD_PREFIX):
        return _Method(symbol)
    if operation.type.startswith(ATTRIBUTE_PREFIX):
        return operator.attrgetter(symbol)
    return function_of(symbol)


def _symbol(operation: Operation) -> str:
    if not isinstance(operation, PyTorchOperation):
        raise TypeError(f"an operation of type {operation.type!r} cannot be executed")
    return operation.symbol


@dataclass(frozen=True, slots=True)
class _Method:
    """Function that calls a method of its first argument."""

    name: str

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of any class
        return getattr(owner, self.name)(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class _Reduction:
    """Callable that picks some of several tensors and reduces them, as `ChosenInputs` does."""

    chosen: list[int]
    reduction: str

    def __call__(self, tensors: Sequence[torch.Tensor]) -> Any:  # noqa: ANN401 - list or tensor
        picked = [tensors[index] for index in self.chosen]
        if self.reduction == "none":
            return picked
        if len(picked) < 2:  # noqa: PLR2004 - one is not reduced
            return picked[0] if picked else None
        if self.reduction == "concat":
            return torch.cat(picked, 1)
        total = sum(picked[1:], picked[0])
        return total / len(picked) if self.reduction == "mean" else total
