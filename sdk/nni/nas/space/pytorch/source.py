"""Source code of a graph model: one class of `torch.nn.Module` for each graph.

The code imports torch, and the modules of the user's classes and functions, and nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import torch
from torch import nn

from nni.common.serializer import is_traceable
from nni.nas.space.graph import IllegalGraphError
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
from nni.nas.space.pytorch.functions import function_name
from nni.nas.space.pytorch.program import Program, ProgramVariable, Statement
from nni.nas.utils.importable_names import get_importable_name, import_

_HEAD: Final = '"""Network that an architecture search has found."""'
_INFIX: Final = {
    "operator.add": "+",
    "operator.sub": "-",
    "operator.mul": "*",
    "operator.matmul": "@",
    "operator.truediv": "/",
    "operator.floordiv": "//",
    "operator.mod": "%",
    "operator.pow": "**",
}
_CONSTANTS: Final = (bool, int, str, bytes, type(None), complex)
_WIDTH: Final = 96
"""Characters of a line beyond which each argument gets its own."""


def source_of(programs: Sequence[Program]) -> str:
    """Return the source of a Python module: imports, and a class for each program.

    Args:
        programs: programs, each after those that it needs.

    Raises:
        IllegalGraphError: an argument cannot be written as source code.
    """
    writer = _SourceWriter()
    classes = [writer.class_source(program) for program in programs]
    imports = "\n".join(f"import {name}" for name in sorted(writer.modules))
    return "\n\n\n".join([f"{_HEAD}\n\n{imports}", *classes]) + "\n"


class _SourceWriter:
    """Writer that collects the modules that its expressions need."""

    def __init__(self) -> None:
        self.modules: set[str] = {"torch"}

    def class_source(self, program: Program) -> str:
        """Return the source code of a program's module class; collect the imports that it needs.

        Args:
            program: what its `forward` does.
        """
        lines = [f"class {program.name}(torch.nn.Module):", "    def __init__(self):"]
        lines.append("        super().__init__()")
        for attribute, member in program.members.items():
            made = self._constructor(member.operation)
            lines.extend(_indented(f"self.{attribute} = ", made, 8))
        lines += ["", f"    def forward({', '.join(['self', *program.inputs])}):"]
        for statement in program.statements:
            lines.extend(_indented(f"{statement.target} = ", self._call(statement), 8))
        lines.append(f"        return {self.expression(program.result)}")
        return "\n".join(lines)

    def _constructor(self, operation: Operation) -> tuple[str, list[str]]:
        """Return the class and the arguments, as source code, that construct a module."""
        if isinstance(operation, Cell):
            return operation.cell_name, []
        if not isinstance(operation, PyTorchOperation):
            raise IllegalGraphError(None, f"operation {operation.type!r} has no source code")
        kwargs = dict(operation.parameters)
        args = kwargs.pop(POSITIONAL, [])
        try:
            arguments = self._arguments(args, kwargs)
        except IllegalGraphError as error:
            raise IllegalGraphError(None, f"{operation.symbol}: {error}") from error
        return self._symbol(import_(operation.symbol)), arguments

    def _call(self, statement: Statement) -> tuple[str, list[str] | None]:
        """Return the source of a call's function and arguments; None if the first is complete."""
        operation, args, kwargs = statement.operation, statement.args, statement.kwargs
        if statement.member is not None:
            return f"self.{statement.member}", self._arguments(args, kwargs)
        if operation.type == CHOSEN_INPUTS:
            return self._reduction(operation.parameters, args[0]), None
        assert isinstance(operation, PyTorchOperation)
        symbol = operation.symbol
        if operation.type.startswith(METHOD_PREFIX):
            owner, *rest = args
            return f"{self._operand(owner)}.{symbol}", self._arguments(rest, kwargs)
        if operation.type.startswith(ATTRIBUTE_PREFIX):
            return f"{self._operand(args[0])}.{symbol}", None
        return self._function(symbol, args, kwargs)

    def _function(
        self, symbol: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[str, list[str] | None]:
        if symbol in _INFIX and not kwargs:
            left, right = map(self._operand, args)
            return f"{left} {_INFIX[symbol]} {right}", None
        if symbol == "operator.getitem":
            return f"{self._operand(args[0])}[{self._index(args[1])}]", None
        if symbol == "operator.neg":
            return f"-{self._operand(args[0])}", None
        is_attribute = len(args) == 2 and isinstance(args[1], str)  # noqa: PLR2004 - owner and name
        if symbol == "builtins.getattr" and is_attribute and args[1].isidentifier():
            return f"{self._operand(args[0])}.{args[1]}", None
        module, _, short = symbol.rpartition(".")
        if module == "builtins":
            return short, self._arguments(args, kwargs)
        self.modules.add("torch" if module.startswith("torch.") else module)
        return symbol, self._arguments(args, kwargs)

    def _reduction(self, parameters: Mapping[str, Any], tensors: Any) -> str:  # noqa: ANN401 - a list
        """Return the expression of some of several tensors, reduced to one."""
        chosen = [self.expression(tensors[index]) for index in parameters["chosen"]]
        listed = f"[{', '.join(chosen)}]"
        match parameters["reduction"], len(chosen):
            case "none", _:
                return listed
            case _, 0:
                return "None"
            case _, 1:
                return chosen[0]
            case "concat", _:
                return f"torch.cat({listed}, 1)"
            case "mean", count:
                return f"({' + '.join(chosen)}) / {count}"
        return " + ".join(chosen)

    def _arguments(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> list[str]:
        written = [self.expression(one) for one in args]
        return written + [f"{name}={self.expression(one)}" for name, one in kwargs.items()]

    def _operand(self, value: Any) -> str:  # noqa: ANN401 - a template
        """Return an expression that may stand beside an operator, in parentheses if need be."""
        text = self.expression(value)
        is_atom = isinstance(value, ProgramVariable | TrainingMode | str | list | tuple | dict)
        return text if is_atom or text.replace("_", "").replace(".", "").isalnum() else f"({text})"

    def _index(self, value: Any) -> str:  # noqa: ANN401 - a template
        """Return the source of what stands between brackets: index, slice or several."""
        if isinstance(value, slice):
            ends = [value.start, value.stop, *([] if value.step is None else [value.step])]
            return ":".join("" if one is None else self.expression(one) for one in ends)
        if isinstance(value, tuple) and value:
            comma = "," if len(value) == 1 else ""
            return ", ".join(map(self._index, value)) + comma
        return self.expression(value)

    def expression(self, value: Any) -> str:  # noqa: ANN401 - a template
        """Return the source code of a value.

        Args:
            value: template with variables, or argument of a constructor.

        Raises:
            IllegalGraphError: the value is of a kind that has no source code.
        """
        match value:
            case Enum():
                return f"{self._symbol(type(value))}({self.expression(value.value)})"
            case ProgramVariable(name, item):
                return name if item is None else f"{name}[{item}]"
            case TrainingMode():
                return "self.training"
            case list():
                return f"[{', '.join(map(self.expression, value))}]"
            case tuple():
                comma = "," if len(value) == 1 else ""
                return f"({', '.join(map(self.expression, value))}{comma})"
            case dict():
                pairs = (f"{self.expression(k)}: {self.expression(v)}" for k, v in value.items())
                return f"{{{', '.join(pairs)}}}"
            case slice():
                return f"slice({self._joined((value.start, value.stop, value.step))})"
            case float():
                number = float(value)  # of numpy, too, whose text has another name
                return repr(number) if number - number == 0 else f"float({str(number)!r})"
        if isinstance(value, _CONSTANTS):
            return repr(value)
        return self._object(value)

    def _joined(self, values: Iterable[Any]) -> str:
        return ", ".join(map(self.expression, values))

    def _object(self, value: Any) -> str:  # noqa: ANN401 - an argument
        """Return the source code of an object that is no plain value; raise if it has none."""
        if value is Ellipsis:
            return "..."
        if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
            return str(value)
        if isinstance(value, torch.device):
            return f"torch.{value!r}"
        if isinstance(value, torch.Size):
            return self.expression(tuple(value))
        if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            return self.expression(value.item())
        if isinstance(value, type):
            return self._symbol(value)
        if is_traceable(value, must_be_instance=True):
            arguments = self._arguments(value.trace_args, value.trace_kwargs)
            return f"{self._symbol(value.trace_symbol)}({', '.join(arguments)})"
        if isinstance(value, Callable) and not isinstance(value, nn.Module):  # type: ignore[arg-type]  # an ABC
            name = function_name(value)
            self._add_module(name)
            return name.removeprefix("builtins.")
        raise IllegalGraphError(
            None,
            f"{value!r:.100} of type {type(value).__name__} has no source code; construct it by "
            "nni.trace, or pass plain values",
        )

    def _symbol(self, symbol: type) -> str:
        """Return the name of a class, and add the module that it is imported from."""
        if getattr(nn, symbol.__name__, None) is symbol:
            return f"torch.nn.{symbol.__name__}"
        name = get_importable_name(symbol, relocate_module=True)
        self._add_module(name)
        return name.removeprefix("builtins.")

    def _add_module(self, name: str) -> None:
        parts = name.split(".")
        if parts[0] in {"torch", "builtins"}:
            return
        for count in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:count])
            found = operator.attrgetter(*parts[count:])
            try:
                found(import_module_of(module))
            except (ImportError, AttributeError):
                continue
            self.modules.add(module)
            return


def import_module_of(name: str) -> object:
    """Import a module by its name and return it.

    Args:
        name: its full name.

    Raises:
        ImportError: there is none.
    """
    from importlib import import_module

    return import_module(name)


def _indented(start: str, call: tuple[str, list[str] | None], width: int) -> list[str]:
    """Return the lines of an assignment; long ones have a line for each argument."""
    called, arguments = call
    indent = " " * width
    if arguments is None:
        return [f"{indent}{start}{called}"]
    line = f"{indent}{start}{called}({', '.join(arguments)})"
    if len(line) <= _WIDTH:
        return [line]
    inner = [f"{indent}    {one}," for one in arguments]
    return [f"{indent}{start}{called}(", *inner, f"{indent})"]
