"""Graph format of networks of PyTorch: `PytorchGraphModelSpace`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, Self

from torch import nn

from nni.common.serializer import is_traceable
from nni.mutable import LabeledMutable, Mutable, MutableList, Sample
from nni.nas.space.executable import ModelEvaluator
from nni.nas.space.graph_space import ROOT_GRAPH, GraphModelSpace, inline_mutators
from nni.nas.space.inline_mutator import used_graphs
from nni.nas.space.mutator import InvalidMutation, Mutator
from nni.nas.space.pytorch.conversion import GraphConverter
from nni.nas.space.pytorch.network import build_network
from nni.nas.space.pytorch.program import Program, program_of
from nni.nas.space.pytorch.shapes import add_shapes
from nni.nas.space.pytorch.source import source_of

_DUMMY_INPUT: Final = "_dummy_input"
"""Key of the shape in JSON."""


class PytorchGraphModelSpace(GraphModelSpace):
    """Space of graphs of a PyTorch network, from which networks and code are made.

    Args:
        evaluator: what evaluates networks; None if something else does.
        mutators: mutators, applied in this order.

    Attributes:
        dummy_input: shape of an input, from which the shapes of all tensors follow; None: the
            nodes have no shapes.

    Examples:
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import LayerChoice, ModelSpace
        >>> class Net(ModelSpace):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = LayerChoice([nn.ReLU(), nn.Linear(4, 2)], label="layer")
        ...     def forward(self, inputs):
        ...         return self.layer(inputs)
        >>> model = PytorchGraphModelSpace.from_model(Net()).freeze({"layer": 1})
        >>> print(model.to_code())
        \"\"\"Network that an architecture search has found.\"\"\"
        <BLANKLINE>
        import torch
        <BLANKLINE>
        <BLANKLINE>
        class _model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer__1 = torch.nn.Linear(in_features=4, out_features=2)
        <BLANKLINE>
            def forward(self, inputs):
                layer = self.layer__1(inputs)
                return layer
        <BLANKLINE>
    """

    framework: ClassVar[str | None] = "pytorch"

    def __init__(
        self,
        evaluator: ModelEvaluator | None = None,
        *,
        mutators: Iterable[Mutator] = (),
    ) -> None:
        super().__init__(evaluator, mutators=mutators)
        self.dummy_input: list[int] | None = None

    @classmethod
    def from_model(
        cls,
        model_space: Any,  # noqa: ANN401 - a network
        evaluator: ModelEvaluator | None = None,
        *,
        dummy_input: Sequence[int] | None = None,
        mutators: Iterable[Mutator] = (),
        **options: Any,  # noqa: ANN401 - this format has no others
    ) -> Self:
        """Convert a network with its choices, and further mutators, to a space of graphs.

        Modules of `torch.nn` and basic units are nodes; other modules are graphs of their own.
        Choices become nodes, and one mutator.

        Args:
            model_space: the network, with choices or without.
            evaluator: what evaluates networks of the space.
            dummy_input: shape of an input, from which the shapes of all tensors follow.
            mutators: mutators of the user. They are applied after the choices of the network.
            **options: none.

        Returns:
            A new space, whose status is `initialized`.

        Raises:
            TypeError: an option is unknown, or `model_space` is no module.
            ValueError: `dummy_input` is no shape.
            nni.nas.space.IllegalGraphError: the network cannot be written as graphs.
        """
        if options:
            raise TypeError(f"the graph format has no option {', '.join(options)}")
        if not isinstance(model_space, nn.Module):
            raise TypeError(
                f"model_space must be a torch.nn.Module, got {type(model_space).__name__}"
            )
        shape = None if dummy_input is None else _checked_shape(dummy_input)
        own, inline = list(mutators), inline_mutators(_leaves_of(model_space))
        if inline and own:
            warnings.warn(
                "the network has choices of its own, and mutators; choices are made before the "
                "mutators are applied, so that these see the network of a sample",
                RuntimeWarning,
                stacklevel=2,
            )
        space = cls(evaluator, mutators=[*inline, *own])
        GraphConverter(space).convert(model_space)
        space.python_class = type(model_space)
        recorded: Any = model_space
        if is_traceable(model_space):
            space.python_init_params = dict(recorded.trace_kwargs)
        space.dummy_input = shape
        return space

    def fork(self) -> Self:
        """Return a copy that can be changed, with the same names and ids."""
        forked = super().fork()
        forked.dummy_input = self.dummy_input
        return forked

    def freeze(self, sample: Sample) -> Self:
        """Return the model of a sample: a copy after all mutators, with shapes if they are known.

        Args:
            sample: value of each label.

        Returns:
            A new object, whose status is `frozen`.

        Raises:
            nni.nas.space.InvalidMutation: shapes do not fit each other, or cannot be derived.
        """
        frozen = super().freeze(sample)
        if frozen.dummy_input is not None:
            try:
                add_shapes(frozen, frozen.programs(), frozen.dummy_input)
            except RuntimeError as error:
                raise InvalidMutation(
                    f"its shapes do not fit, or cannot be derived: {error}"
                ) from error
        return frozen

    def _dump(self) -> dict[str, Any]:
        dumped = super()._dump()
        return dumped if self.dummy_input is None else {**dumped, _DUMMY_INPUT: self.dummy_input}

    @classmethod
    def _load(cls, **dumped: Any) -> Self:  # noqa: ANN401 - what `_dump` has written
        dummy_input = dumped.pop(_DUMMY_INPUT, None)
        space = super()._load(**dumped)
        space.dummy_input = dummy_input
        return space

    def programs(self) -> dict[str, Program]:
        """Return the programs of the graphs by name, each after the graphs that it calls.

        Returns:
            Name of the graph to program.

        Raises:
            nni.nas.space.IllegalGraphError: a graph is malformed, or has a choice.
        """
        names = reversed(used_graphs(self))
        return {name: program_of(self.graphs[name]) for name in names}

    def build_model(self) -> nn.Module:
        """Return a new network, with fresh weights.

        `nni.nas.utils.original_state_dict_hooks` loads weights of the original module into it.

        Returns:
            The network.

        Raises:
            nni.nas.space.IllegalGraphError: a graph is malformed, or has a choice.
        """
        return build_network(self.programs(), ROOT_GRAPH)

    def to_code(self) -> str:
        """Return source code of the network: a module whose class `_model` has no arguments.

        It needs torch and the modules of the user, and no part of NNI. Its state dict has the names
        of `executable_model()`.

        Returns:
            Source code of Python.

        Raises:
            nni.nas.space.IllegalGraphError: a graph is malformed, has a choice, or a parameter that
                cannot be written as source code.
        """
        return source_of(list(self.programs().values()))


def _checked_shape(shape: Sequence[int]) -> list[int]:
    """Return an input shape as a list; raise ValueError unless its sizes are positive."""
    sizes = list(shape)
    if not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError(
            f"dummy_input must be a shape: positive integers, such as [1, 3, 32, 32]; got {shape!r}"
        )
    return sizes


def _leaves_of(network: nn.Module) -> dict[str, LabeledMutable]:
    """Return the leaves of a network by label; for a plain network, the leaves of its modules."""
    if isinstance(network, Mutable):
        return network.simplify()
    return MutableList(_nearest_spaces(network)).simplify()


def _nearest_spaces(network: nn.Module) -> list[Mutable]:
    """Return the nearest modules below a network that are spaces."""
    found: list[Mutable] = []
    for child in network.children():
        if isinstance(child, Mutable):
            found.append(child)
        else:
            found += _nearest_spaces(child)
    return found
