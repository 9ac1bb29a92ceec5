"""Mutator of the choices that are written into a model: layers, inputs, depths and arguments.

In a graph they are nodes: a choice of layers has its candidates as operations, and a mutable
argument is a parameter. The mutator puts what a sample chooses in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    LabeledMutable,
    Mutable,
    MutableAnnotation,
    Sample,
    SampleValidationError,
)
from nni.mutable.labels import Label
from nni.nas.space.graph import Node
from nni.nas.space.graph_op import CHOSEN_INPUTS, MODULE_PREFIX, Cell, Operation
from nni.nas.space.mutator import InvalidMutation, Model, Mutation, StationaryMutator

__all__ = ["INPUT_CHOICE", "LAYER_CHOICE", "REPEAT", "InlineMutator", "specialize", "used_graphs"]

_PRIMITIVES: Final = f"{MODULE_PREFIX}nni.nas.nn.pytorch."
LAYER_CHOICE: Final = f"{_PRIMITIVES}choice.LayerChoice"
"""Type of choices of layers: parameters `choice`, `names`, and `candidates`, operations."""
INPUT_CHOICE: Final = f"{_PRIMITIVES}inputs.InputChoice"
"""Type of choices of inputs: parameters `choice`, `n_candidates` and `reduction`."""
REPEAT: Final = f"{_PRIMITIVES}repeat.Repeat"
"""Type of repetitions: parameters `depth`, and `blocks`, operations."""
_NAME: Final = "inline"
_GRANULARITY: Final = 4
"""Of the values of a continuous leaf that a sampler may choose from: 15 quantiles."""


class InlineMutator(StationaryMutator):
    """Mutator of all choices that are written into a model.

    Its dimensions are those of the model, in the same order; `apply` asks for one after another.

    Args:
        mutables: leaves of the model by label.

    Attributes:
        mutables: leaves of the model by label.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import GraphModelSpace
        >>> model = GraphModelSpace()
        >>> width = Categorical([8, 16], label="width")
        >>> node = model.add_graph("_model").add_node("fc", "__torch__.net.FC", {"width": width})
        >>> mutator = InlineMutator({"width": width})
        >>> with mutator.bind_model(model):
        ...     mutator.freeze({"width": 16}).get_node_by_name("fc").operation.parameters
        {'width': 16}
    """

    def __init__(self, mutables: Mapping[str, LabeledMutable]) -> None:
        super().__init__(label=_NAME)
        self.mutables = dict(mutables)

    def mutate(self, model: Model) -> None:
        """Ask for a value of each leaf and apply them in place; raise InvalidMutation if wrong."""
        sample: Sample = {
            label: self.choice(_values(leaf))
            for label, leaf in self.mutables.items()
            if not isinstance(leaf, MutableAnnotation)
        }
        error = self.check_contains(sample)
        if error is not None:
            raise InvalidMutation(str(error))
        specialize(model, sample)

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the leaves of the model."""
        for mutable in self.mutables.values():
            yield from mutable.leaf_mutables(is_leaf)

    def dry_run(self, model: Model) -> tuple[dict[str, Categorical], Model]:
        """Return the finite choices of the model by label, and the model of the default sample."""
        sample: Sample = {}
        for leaf in self.mutables.values():
            leaf.add_default(sample)
        choices = {
            label: leaf for label, leaf in self.mutables.items() if isinstance(leaf, Categorical)
        }
        return choices, self._mutated(model, sample)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample does not fit one of the leaves, None if it fits all."""
        for mutable in self.mutables.values():
            error = mutable.check_contains(sample)
            if error is not None:
                return error
        return None

    def freeze(self, sample: Sample) -> Model:
        """Return a copy of the bound model with what a sample chooses."""
        self.validate(sample)
        return self._mutated(self.bound_model, sample)

    def _mutated(self, model: Model, sample: Sample) -> Model:
        mutated = model.fork()
        specialize(mutated, sample)
        chosen = [sample[label] for label in self.mutables if label in sample]
        mutated.parent = Mutation(self, chosen, model, mutated)
        return mutated

    def _dump(self) -> dict[str, Any]:
        return {"mutables": {str(label): leaf for label, leaf in self.mutables.items()}}

    @classmethod
    def _load(cls, *, mutables: Mapping[str, LabeledMutable]) -> Self:
        return cls({Label(label): leaf for label, leaf in mutables.items()})


def specialize(model: Model, sample: Sample) -> None:
    """Replace all choices of a model by those of a sample, in place; remove unused graphs.

    Args:
        model: graph model, which is changed in place; graphs that no node uses are removed.
        sample: value of each label.
    """
    for graph in list(model.graphs.values()):
        for node in list(graph.hidden_nodes):
            _specialize_node(node, sample)
    used = set(used_graphs(model))
    for name in [name for name in model.graphs if name not in used]:
        del model.graphs[name]


def used_graphs(model: Model) -> list[str]:
    """Return the names of the graphs that the root graph uses, itself first.

    Args:
        model: graph model without choices.
    """
    names: list[str] = []
    waiting = [model.root_graph.name] if model.graphs else []
    while waiting:
        name = waiting.pop()
        if name in names:
            continue
        names.append(name)
        cells = [node.operation for node in model.graphs[name].hidden_nodes]
        waiting.extend(one.cell_name for one in reversed(cells) if isinstance(one, Cell))
    return names


def _specialize_node(node: Node, sample: Sample) -> None:
    """In place, replace a choice by what a sample chooses, mutable parameters by their values."""
    operation = node.operation
    while operation.type == LAYER_CHOICE:
        parameters = operation.parameters
        chosen = parameters["choice"].freeze(sample)
        operation = parameters["candidates"][parameters["names"].index(chosen)]
        node.python_name = f"{node.python_name}.{chosen}"
    if operation.type == REPEAT:
        _repeat(node, operation, sample)
        return
    if operation.type == INPUT_CHOICE:
        chosen = operation.parameters["choice"].freeze(sample)
        reduction = operation.parameters["reduction"]
        operation = Operation.new(CHOSEN_INPUTS, {"chosen": list(chosen), "reduction": reduction})
    if any(map(_is_mutable, operation.parameters.values())):
        values = {
            name: one.freeze(sample) if _is_mutable(one) else one
            for name, one in operation.parameters.items()
        }
        operation = Operation.new(operation.type, values, attributes=operation.attributes)
    node.operation = operation


def _repeat(node: Node, operation: Operation, sample: Sample) -> None:
    """Replace a repetition by its first blocks in a row, as many as a sample says, in place."""
    depth = operation.parameters["depth"]
    length = int(depth.freeze(sample)) if _is_mutable(depth) else depth
    graph = node.graph
    (entry,) = node.incoming_edges
    head, head_slot = entry.head, entry.head_slot
    entry.remove()
    blocks = []
    for index, block in enumerate(operation.parameters["blocks"][:length]):
        one = graph.add_node(f"{node.name}.blocks.{index}", block)
        one.python_name = f"{node.python_name}.blocks.{index}"
        graph.add_edge((head, head_slot), (one, None))
        head, head_slot = one, None
        blocks.append(one)
    for edge in node.outgoing_edges:
        edge.head, edge.head_slot = head, head_slot
    node.remove()
    for one in blocks:
        _specialize_node(one, sample)


def _is_mutable(value: object) -> bool:
    """Return whether a parameter represents several values."""
    return isinstance(value, Mutable)


def _values(leaf: LabeledMutable) -> list[Any]:
    """Return the values of a leaf, or a grid of them if it is numerical."""
    match leaf:
        case Categorical():
            return list(leaf.values)
        case CategoricalMultiple():
            return list(leaf.grid_values(1))
    return list(leaf.grid_values(_GRANULARITY))
