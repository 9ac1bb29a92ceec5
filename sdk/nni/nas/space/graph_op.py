"""Operations of graph nodes: what a node computes, as data.

Argument templates stand for the arguments of a call. A template is nested lists, tuples and dicts
of constants, in which `InputSlot` stands for an input of the node, and `TrainingMode` for the mode
of the module that the graph describes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from nni.mutable.record import marked, unmarked

__all__ = [
    "ATTRIBUTE_PREFIX",
    "CELL",
    "CHOSEN_INPUTS",
    "FUNCTION_PREFIX",
    "INPUTS",
    "METHOD_PREFIX",
    "MODULE_PREFIX",
    "OUTPUTS",
    "POSITIONAL",
    "Cell",
    "InputSlot",
    "Operation",
    "PyTorchOperation",
    "TrainingMode",
    "filled",
    "slots_of",
]

MODULE_PREFIX: Final = "__torch__."
"""Begin of the types of modules; the full name of the class follows."""
FUNCTION_PREFIX: Final = "Function."
"""Begin of the types of functions; the full name follows."""
METHOD_PREFIX: Final = "Tensor."
"""Begin of the types of methods of the first argument."""
ATTRIBUTE_PREFIX: Final = "Attribute."
"""Begin of the types of attributes of the only argument."""
INPUTS: Final = "_inputs"
"""Type of the node whose outputs are the inputs of the graph."""
OUTPUTS: Final = "_outputs"
"""Type of the node whose inputs are the outputs of the graph."""
CELL: Final = "_cell"
"""Type of nodes that stand for another graph."""
CHOSEN_INPUTS: Final = "__torch__.nni.nas.nn.pytorch.inputs.ChosenInputs"
"""Type of nodes that reduce some of their inputs: `chosen` positions, by `reduction`."""
POSITIONAL: Final = "*"
"""Parameter with the arguments of a module that can only be passed by position, a list."""

Template = Any
"""Nested lists, tuples and dicts of constants, `InputSlot` and `TrainingMode`."""


@dataclass(frozen=True, slots=True)
class InputSlot:
    """Placeholder, in an argument template, of the input of an index.

    Examples:
        >>> filled([InputSlot(0), 1], {0: "x"}.get)
        ['x', 1]
    """

    index: int
    """Slot of the input: `tail_slot` of an edge."""

    def _dump(self) -> dict[str, Any]:
        return {"index": self.index}

    @classmethod
    def _load(cls, *, index: int) -> Self:
        return cls(index)


@dataclass(frozen=True, slots=True)
class TrainingMode:
    """Place of `self.training` in an argument template.

    Examples:
        >>> TrainingMode() == TrainingMode()
        True
    """

    def _dump(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _load(cls) -> Self:
        return cls()


@dataclass(frozen=True, slots=True, repr=False)
class Operation:
    """Immutable record of what a node computes: type, parameters and attributes.

    Examples:
        >>> Operation.new("__torch__.torch.nn.modules.linear.Linear", {"in_features": 4})
        torch.nn.modules.linear.Linear(in_features=4)
        >>> Operation.new("_cell", cell_name="block").cell_name
        'block'
    """

    type: str
    """Name of the class or function behind a prefix; special ones begin with an underscore."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Arguments of the constructor of a module; `args` and `kwargs` of a function, templates."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """Facts about the node, such as the shapes of its inputs and outputs."""

    @staticmethod
    def new(
        type_name: str,
        parameters: Mapping[str, Any] | None = None,
        cell_name: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Return an operation of the class for a type; raise unless just cells have a `cell_name`.

        Args:
            type_name: type of the operation.
            parameters: its parameters; none without.
            cell_name: name of the graph that the node stands for, for the type `_cell`.
            attributes: facts about the node.

        Returns:
            A `Cell` for the type `_cell`; a `PyTorchOperation` for modules, functions, methods and
            attributes; else an `Operation`.

        Raises:
            ValueError: the type is `_cell` and the name is missing, or the other way round.
        """
        if (type_name == CELL) != (cell_name is not None):
            raise ValueError(
                f"cell_name must be given for the type {CELL!r} and no other, got "
                f"{cell_name=} for {type_name!r}"
            )
        given = dict(parameters or {}), dict(attributes or {})
        if cell_name is not None:
            return Cell(type_name, *given, cell_name)
        prefixes = (MODULE_PREFIX, FUNCTION_PREFIX, METHOD_PREFIX, ATTRIBUTE_PREFIX)
        made = PyTorchOperation if type_name.startswith(prefixes) else Operation
        return made(type_name, *given)

    @property
    def params(self) -> dict[str, Any]:
        """Another name of `parameters`."""
        return self.parameters

    def __repr__(self) -> str:
        facts = f" {self.attributes!r}" if self.attributes else ""
        arguments = [f"{name}={value!r}" for name, value in self.parameters.items()]
        return f"{self._name()}({', '.join(arguments)}){facts}"

    def _name(self) -> str:
        return self.type

    def _dump(self) -> dict[str, Any]:
        dumped = {"type": self.type, "parameters": marked(self.parameters)}
        if self.attributes:
            dumped["attributes"] = marked(self.attributes)
        return dumped

    @classmethod
    def _load(
        cls,
        *,
        type: str,  # noqa: A002 - key of the documented form
        parameters: dict[str, Any],
        attributes: dict[str, Any] | None = None,
        cell_name: str | None = None,
    ) -> Operation:
        return Operation.new(type, unmarked(parameters), cell_name, unmarked(attributes or {}))


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Operation):
    """Operation of a node that represents another graph of the model.

    Examples:
        >>> Cell("_cell", cell_name="block").cell_name
        'block'
    """

    cell_name: str = ""
    """Name of that graph."""

    def _name(self) -> str:
        return f"{self.type} {self.cell_name}"

    def _dump(self) -> dict[str, Any]:
        return {**Operation._dump(self), "cell_name": self.cell_name}  # noqa: SLF001 - its base


@dataclass(frozen=True, slots=True, repr=False)
class PyTorchOperation(Operation):
    """Module, function, method or attribute of PyTorch, or of the user.

    Examples:
        >>> PyTorchOperation("Function.torch.relu").symbol
        'torch.relu'
    """

    @property
    def symbol(self) -> str:
        """Full name of the class or function; the name alone of a method or an attribute."""
        for prefix in (MODULE_PREFIX, FUNCTION_PREFIX, METHOD_PREFIX, ATTRIBUTE_PREFIX):
            if self.type.startswith(prefix):
                return self.type.removeprefix(prefix)
        return self.type

    def _name(self) -> str:
        return self.symbol

    @property
    def is_module(self) -> bool:
        """Whether it is a module, which has weights and a mode."""
        return self.type.startswith(MODULE_PREFIX)


def filled(template: Template, value_of: Callable[[int], Any]) -> Any:  # noqa: ANN401 - a template
    """Return a copy of a template, each input slot replaced by a function's value for its index.

    Args:
        template: argument template.
        value_of: function from the index of a slot to what replaces it.

    Returns:
        A new template; parts without slots are the same objects.

    Examples:
        >>> filled(([InputSlot(1), 2], {"mode": InputSlot(0)}), "ab".__getitem__)
        (['b', 2], {'mode': 'a'})
    """
    match template:
        case InputSlot(index):
            return value_of(index)
        case list() | tuple():
            return type(template)(filled(one, value_of) for one in template)
        case dict():
            return {key: filled(one, value_of) for key, one in template.items()}
        case slice():
            return slice(
                filled(template.start, value_of),
                filled(template.stop, value_of),
                filled(template.step, value_of),
            )
    return template


def slots_of(template: Template) -> Iterator[int]:
    """Yield the indices of the input slots of a template, from left to right.

    Args:
        template: argument template.

    Yields:
        Indices; one that occurs twice is yielded twice.

    Examples:
        >>> list(slots_of(([InputSlot(1), 2], {"mode": InputSlot(0)})))
        [1, 0]
    """
    found: list[int] = []
    filled(template, found.append)
    yield from found
