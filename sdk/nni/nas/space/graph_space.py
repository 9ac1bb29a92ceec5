"""Format of models as graphs: `GraphModelSpace`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, Self

from nni.common.framework import shortcut
from nni.mutable import LabeledMutable, Mutable, Sample, SampleValidationError
from nni.mutable.base import is_labeled
from nni.mutable.labels import Label
from nni.mutable.record import marked, unmarked
from nni.nas.space.executable import ExecutableModelSpace, ModelEvaluator
from nni.nas.space.graph import Graph, IllegalGraphError, Node
from nni.nas.space.graph_op import Cell
from nni.nas.space.graph_record import recorded_graph, restore_graph
from nni.nas.space.inline_mutator import InlineMutator
from nni.nas.space.mutator import Mutation, Mutator, MutatorSequence
from nni.nas.space.status import ModelStatus

__all__ = ["ROOT_GRAPH", "GraphModelSpace"]

ROOT_GRAPH: Final = "_model"
"""Name of the outermost graph."""
_METADATA: Final = ("_status", "_evaluator", "_mutators", "_sample", "_metrics", "framework")


class GraphModelSpace(ExecutableModelSpace):
    """Model as graphs of nodes and edges, and the mutators that change it.

    A model of the space is the base model after all mutators. Choices that are written into the
    model are one of them. `nni.dump` writes graphs as JSON; weights are not part of it, so that
    networks start from fresh ones.

    Args:
        evaluator: what evaluates networks; None if something else does.
        mutators: mutators, applied in this order.

    Attributes:
        graphs: graphs by name; the outermost one is `_model`.
        mutators: mutators, applied in this order.
        parent: mutation that this model was made by; None for a base model.
        python_class: class of the base model, None if it was not made from one.
        python_init_params: arguments of its constructor, None if they are not known.

    Examples:
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import LayerChoice, ModelSpace
        >>> class Net(ModelSpace):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")
        ...     def forward(self, inputs):
        ...         return self.layer(inputs)
        >>> space = GraphModelSpace.from_model(Net())
        >>> space.root_graph.hidden_nodes[0].operation.type
        '__torch__.nni.nas.nn.pytorch.choice.LayerChoice'
        >>> space.freeze({"layer": 1}).root_graph.hidden_nodes[0].operation.type
        '__torch__.torch.nn.modules.activation.Tanh'
    """

    framework: ClassVar[str | None] = None
    """Name of the framework of the operations; None for graphs of any."""

    def __init__(
        self,
        evaluator: ModelEvaluator | None = None,
        *,
        mutators: Iterable[Mutator] = (),
    ) -> None:
        super().__init__(evaluator)
        self.graphs: dict[str, Graph] = {}
        self.mutators = MutatorSequence(mutators)
        self.parent: Mutation | None = None
        self.python_class: type | None = None
        self.python_init_params: dict[str, Any] | None = None
        self._last_id = 0
        self._leaves: list[LabeledMutable] | None = None

    @classmethod
    def from_model(
        cls,
        model_space: Any,  # noqa: ANN401 - a network
        evaluator: ModelEvaluator | None = None,
        **options: Any,  # noqa: ANN401 - of the framework
    ) -> Self:
        """Convert a network to a space of graphs of its framework, which is PyTorch.

        Args:
            model_space: the network with its choices.
            evaluator: what evaluates networks of the space.
            **options: see `nni.nas.space.pytorch.PytorchGraphModelSpace.from_model`.

        Returns:
            A new space, whose status is `initialized`.
        """
        converter: Any = shortcut("nni.nas.space")("PytorchGraphModelSpace")
        converted: Self = converter.from_model(model_space, evaluator, **options)
        return converted

    # Graphs

    def new_id(self) -> int:
        """Return an id that no node or graph of the model has.

        Returns:
            A positive number.
        """
        self._last_id += 1
        return self._last_id

    def add_graph(
        self, name: str, input_names: Iterable[str] = (), output_names: Iterable[str] = ()
    ) -> Graph:
        """Add an empty graph and return it; raise IllegalGraphError if the name is taken.

        Args:
            name: name of the graph; `_model` for the outermost one.
            input_names: names of its inputs.
            output_names: names of its outputs.

        Returns:
            The graph.

        Raises:
            IllegalGraphError: there is a graph of that name.
        """
        if name in self.graphs:
            raise IllegalGraphError(name, "the model has a graph of this name already")
        graph = Graph(self, self.new_id(), name, input_names, output_names)
        self.graphs[name] = graph
        return graph

    @property
    def root_graph(self) -> Graph:
        """Outermost graph; raises IllegalGraphError without one.

        Raises:
            IllegalGraphError: the model has none.
        """
        if ROOT_GRAPH not in self.graphs:
            raise IllegalGraphError(
                ROOT_GRAPH, "the model has no outermost graph; convert one by from_model"
            )
        return self.graphs[ROOT_GRAPH]

    def get_nodes(self) -> list[Node]:
        """Return the nodes of all graphs, without those of inputs and outputs.

        Returns:
            The nodes.
        """
        return [node for graph in self.graphs.values() for node in graph.hidden_nodes]

    def get_nodes_by_label(self, label: str) -> list[Node]:
        """Return the nodes of a label.

        Args:
            label: label.

        Returns:
            The nodes of all graphs.
        """
        return [node for node in self.get_nodes() if node.label == label]

    def get_nodes_by_type(self, type_name: str) -> list[Node]:
        """Return the nodes whose operation has a type.

        Args:
            type_name: type, with its prefix.

        Returns:
            The nodes of all graphs.
        """
        return [node for node in self.get_nodes() if node.operation.type == type_name]

    def get_node_by_name(self, node_name: str) -> Node | None:
        """Return the first node with a name in any graph of the model; None if there is none.

        Args:
            node_name: name in its graph.

        Returns:
            The first node of that name; None if there is none.
        """
        return next((node for node in self.get_nodes() if node.name == node_name), None)

    def get_node_by_python_name(self, python_name: str) -> Node | None:
        """Return the first node of a module's dotted name in any graph; None if there is none.

        Args:
            python_name: name of the module in the model, such as `body.0.conv`.

        Returns:
            The first node of that module; None if there is none.
        """
        return next((node for node in self.get_nodes() if node.python_name == python_name), None)

    def get_cell_nodes(self) -> list[Node]:
        """Return the nodes that represent other graphs.

        Returns:
            The nodes of all graphs.
        """
        return [node for node in self.get_nodes() if isinstance(node.operation, Cell)]

    def export_placement_constraint(self) -> dict[str, Any]:
        """Return the nodes' GPUs, each once, as a trial's constraint; type `None` without.

        Returns:
            `type` and `gpus`: `None` without any, `Device` with pairs of host and index.
        """
        places = [node.placement for node in self.get_nodes()]
        placed = dict.fromkeys(place for place in places if place is not None)
        if not placed:
            return {"type": "None", "gpus": []}
        return {"type": "Device", "gpus": [[host, index] for host, index in placed]}

    # Mutation

    @property
    def history(self) -> list[GraphModelSpace]:
        """Models that this one was made from: the base model first, its direct parent last."""
        models: list[GraphModelSpace] = []
        parent = self.parent
        while parent is not None:
            models.insert(0, parent.from_)
            parent = parent.from_.parent
        return models

    @property
    def intermediate_metrics(self) -> list[Any]:
        """Intermediate metrics that were reported."""
        return list(self.metrics.intermediates)

    def fork(self) -> Self:
        """Return a copy that can be changed, with the same names and ids.

        Returns:
            The copy, whose status is `mutating`; it has no sample and no metrics.
        """
        forked = type(self)(self.evaluator, mutators=self.mutators)
        for graph in self.graphs.values():
            graph.copy_to(forked)
        forked._last_id = self._last_id  # noqa: SLF001 - of this class
        forked.python_class = self.python_class
        forked.python_init_params = self.python_init_params
        forked.status = ModelStatus.Mutating
        return forked

    def with_evaluator(self, evaluator: ModelEvaluator | None) -> Self:
        """Return a copy of the space with an evaluator; None keeps the current one.

        Args:
            evaluator: what evaluates networks; None for that of this space.

        Returns:
            A new space, whose status is `initialized`.
        """
        space = self.fork()
        space.status = ModelStatus.Initialized
        space.evaluator = self.evaluator if evaluator is None else evaluator
        return space

    def freeze(self, sample: Sample) -> Self:
        """Return the model of a sample: a copy after all mutators."""
        self.check_freezable(sample)
        with self.mutators.bind_model(self):
            frozen: Self = self.mutators.freeze(sample) if len(self.mutators) else self.fork()
        frozen.evaluator = self.frozen_evaluator(sample)
        frozen.sample = dict(sample)
        frozen.status = ModelStatus.Frozen
        return frozen

    def model_leaves(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Return the leaves of the mutators; cached for the default `is_leaf`."""
        if is_leaf is is_labeled and self._leaves is not None:
            return self._leaves
        with self.mutators.bind_model(self):
            leaves = list(self.mutators.leaf_mutables(is_leaf))
        if is_leaf is is_labeled:
            self._leaves = leaves
        return leaves

    def check_model(self, sample: Sample) -> SampleValidationError | None:
        """Return why a mutator cannot be applied with a sample, None if all can."""
        with self.mutators.bind_model(self):
            return self.mutators.check_contains(sample)

    # Networks, code and JSON

    def build_model(self) -> Any:  # noqa: ANN401 - of a framework
        """Raise TypeError: graphs of no framework cannot be executed.

        Returns:
            Nothing.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "a graph of no framework cannot be executed; use PytorchGraphModelSpace of "
            "nni.nas.space.pytorch"
        )

    def to_code(self) -> str:
        """Raise TypeError: graphs of no framework have no source code.

        Returns:
            Nothing.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "a graph of no framework has no source code; use PytorchGraphModelSpace of "
            "nni.nas.space.pytorch"
        )

    def _dump(self) -> dict[str, Any]:
        dumped: dict[str, Any] = {
            name: recorded_graph(graph) for name, graph in self.graphs.items()
        }
        dumped["_status"] = self.status.value
        dumped["_evaluator"] = self.evaluator
        dumped["framework"] = self.framework
        if self.sample is None:
            return {**dumped, "_mutators": list(self.mutators)}
        dumped["_sample"] = {str(label): marked(value) for label, value in self.sample.items()}
        return {**dumped, "_metrics": self.metrics}

    @classmethod
    def _load(cls, **dumped: Any) -> Self:  # noqa: ANN401 - what `_dump` has written
        metadata = {name: dumped.pop(name) for name in _METADATA if name in dumped}
        space = cls(metadata["_evaluator"], mutators=metadata.get("_mutators") or ())
        for name, graph in dumped.items():
            restore_graph(space, name, graph)
        space._last_id = max(map(_greatest_id, space.graphs.values()), default=0)
        if "_sample" in metadata:
            sample: Mapping[str, Any] = metadata["_sample"]
            space.sample = {Label(label): unmarked(value) for label, value in sample.items()}
            space.metrics = metadata["_metrics"]
        space.status = metadata["_status"]
        return space


def inline_mutators(leaves: Mapping[str, LabeledMutable]) -> list[Mutator]:
    """Return one `InlineMutator` of a model's leaves, in a list; an empty list without leaves.

    Args:
        leaves: leaves of the model by label.
    """
    return [InlineMutator(leaves)] if leaves else []


def _greatest_id(graph: Graph) -> int:
    return max((graph.id, *(node.id for node in graph.hidden_nodes)))
