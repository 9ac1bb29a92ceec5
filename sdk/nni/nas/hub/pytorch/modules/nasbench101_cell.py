"""Cell of NAS-Bench-101, whose graph is searched: `NasBench101Cell`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    Constraint,
    ConstraintViolation,
    Sample,
    SampleMissingError,
    SampleValidationError,
    label_scope,
)
from nni.mutable.labels import SEPARATOR
from nni.mutable.record import ConstructorRecord
from nni.nas.hub.pytorch.modules.nasbench101_graph import (
    MIN_VERTICES,
    NasBench101Graph,
    graph_of,
    pruned,
    vertex_channels,
)
from nni.nas.nn.pytorch import MutableModule
from nni.nas.nn.pytorch.base import module_label

OperatorOfFeatures = Callable[[int], nn.Module]
Projection = Callable[[int, int], nn.Module]


class NasBench101CellConstraint(ConstructorRecord, Constraint):
    """Constraint that a graph has few edges, and a path from input to output.

    The pruned architecture is added to samples under the label, in the form that queries of the
    benchmark take; it is no choice, and is ignored if it is there.

    Args:
        max_num_nodes: largest number of vertices, input and output included.
        max_num_edges: largest number of edges, before the graph is pruned.
        label: name inside the scope of the cell, which has the choices.

    Examples:
        >>> rule = NasBench101CellConstraint(3, 2, label="final")
        >>> sample = {"num_nodes": 3, "op1": "conv", "input1": [0], "input2": []}
        >>> print(rule.check_contains(sample))
        the cell must not have less than 2 vertices on paths from input to output (in final)
        >>> rule.add_default(sample := {**sample, "input2": [1]})
        >>> sample["final"]
        {'op1': 'conv', 'input1': [0], 'input2': [1]}
    """

    def __init__(self, max_num_nodes: int, max_num_edges: int, *, label: str | None = None) -> None:
        self.max_num_nodes = max_num_nodes
        self.max_num_edges = max_num_edges
        super().__init__(label)

    def constructor_arguments(self) -> dict[str, Any]:
        """Return keyword arguments that construct an equal constraint."""
        return {
            "max_num_nodes": self.max_num_nodes,
            "max_num_edges": self.max_num_edges,
            "label": self.label,
        }

    @property
    def prefix(self) -> str:
        """Prefix of the choices' labels: the own label up to its last `/`."""
        scope, separator, _ = self.label.rpartition(SEPARATOR)
        return scope + separator

    def graph(self, sample: Sample) -> NasBench101Graph | SampleValidationError:
        """Return the pruned graph of a sample, or, not raised, the error that it has none.

        Args:
            sample: the choices by label.

        Returns:
            The graph, or an error.
        """
        for name in self._needed(sample):
            if self.prefix + name not in sample:
                return SampleMissingError.of(self.prefix + name, sample)
        number = sample[f"{self.prefix}num_nodes"]
        if number not in range(MIN_VERTICES, self.max_num_nodes + 1):
            return ConstraintViolation(
                f"the cell must have {MIN_VERTICES} to {self.max_num_nodes} vertices, got {number}"
            )
        graph = graph_of(sample, self.prefix)
        if graph.num_edges > self.max_num_edges:
            return ConstraintViolation(
                f"the cell must have at most {self.max_num_edges} edges, got {graph.num_edges}"
            )
        return pruned(graph) or ConstraintViolation(
            f"the cell must not have less than {MIN_VERTICES} vertices on paths from input to "
            "output"
        )

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return an error for a missing label, a wrong number of vertices or edges, or no path."""
        found = self.graph(sample)
        return found.inside(self.label) if isinstance(found, SampleValidationError) else None

    def add_default(self, sample: Sample) -> None:
        """Add the pruned architecture to a sample in place, if its graph is valid."""
        found = self.graph(sample)
        if isinstance(found, NasBench101Graph):
            sample[self.label] = found.as_dict()

    def add_random(self, sample: Sample, random_state: object) -> None:
        """Add the pruned architecture to a sample that has a valid graph."""
        del random_state
        self.add_default(sample)

    def add_each(self, sample: Sample, granularity: int) -> Any:  # noqa: ANN401 - an iterator
        """Yield once if the graph is valid; the sample has the pruned architecture meanwhile."""
        for _ in super().add_each(sample, granularity):
            self.add_default(sample)
            yield
            sample.pop(self.label, None)

    def _needed(self, sample: Sample) -> list[str]:
        if f"{self.prefix}num_nodes" not in sample:
            return ["num_nodes"]
        number = sample[f"{self.prefix}num_nodes"]
        if number not in range(MIN_VERTICES, self.max_num_nodes + 1):
            return []
        operations = [f"op{at}" for at in range(1, number - 1)]
        return operations + [f"input{at}" for at in range(1, number)]


class NasBench101Cell(MutableModule):
    """Cell whose graph and operations are searched, within the rules of NAS-Bench-101.

    With `label="cell"` the dimensions are `cell/num_nodes`, `cell/op1`, … of the vertices between
    input and output, whose values are names of operations, and `cell/input1`, …: lists of the
    earlier vertices that a vertex reads. The constraint `cell/final` adds the pruned architecture
    to samples. The cell computes nothing before it is frozen; each freezing builds its modules
    anew.

    Args:
        op_candidates: functions of the number of features, by name or as a list.
        in_features: channels of the input.
        out_features: channels of the output.
        projection: function of the numbers of input and output channels: module between the input
            of the cell and a vertex.
        max_num_nodes: largest number of vertices, input and output included; at least 2.
        max_num_edges: largest number of edges.
        label: name of the cell, the scope of the labels above.

    Raises:
        ValueError: there is no candidate, or a number is too small.

    Source: Ying et al., NAS-Bench-101, 2019, section 2.

    Examples:
        >>> cell = NasBench101Cell(
        ...     {"conv": lambda n: nn.Conv2d(n, n, 3, padding=1)}, 4, 8,
        ...     lambda i, o: nn.Conv2d(i, o, 1), max_num_nodes=3, label="cell",
        ... )
        >>> list(cell.simplify())
        ['cell/num_nodes', 'cell/op1', 'cell/input1', 'cell/input2', 'cell/final']
        >>> frozen = cell.freeze(
        ...     {"cell/num_nodes": 3, "cell/op1": "conv", "cell/input1": [0], "cell/input2": [0, 1]}
        ... )
        >>> frozen(torch.zeros(1, 4, 6, 6)).shape
        torch.Size([1, 8, 6, 6])
    """

    def __init__(
        self,
        op_candidates: Mapping[str, OperatorOfFeatures] | Sequence[OperatorOfFeatures],
        in_features: int,
        out_features: int,
        projection: Projection,
        max_num_nodes: int = 7,
        max_num_edges: int = 9,
        label: str | None = None,
    ) -> None:
        super().__init__()
        self.op_candidates = _named(op_candidates)
        self.in_features = in_features
        self.out_features = out_features
        self.projection = projection
        self.label: str = module_label(label, "NasBench101Cell")
        *choices, self.constraint = _choices(
            list(self.op_candidates), max_num_nodes, max_num_edges, self.label
        )
        for one in [*choices, self.constraint]:
            self.add_mutable(one)

    @classmethod
    def create_fixed_module(
        cls,
        sample: Sample,
        op_candidates: Mapping[str, OperatorOfFeatures] | Sequence[OperatorOfFeatures],
        in_features: int,
        out_features: int,
        projection: Projection,
        max_num_nodes: int = 7,
        max_num_edges: int = 9,
        label: str | None = None,
    ) -> nn.Module:
        """Return the cell of a sample, built without choices; raise if it is invalid.

        Args:
            sample: value of each label.
            op_candidates: see the class.
            in_features: see the class.
            out_features: see the class.
            projection: see the class.
            max_num_nodes: see the class.
            max_num_edges: see the class.
            label: see the class.

        Returns:
            A `NasBench101FixedCell`.
        """
        named = _named(op_candidates)
        choices = _choices(
            list(named), max_num_nodes, max_num_edges, module_label(label, cls.__name__)
        )
        return _fixed(sample, choices, named, (in_features, out_features), projection)

    def freeze(self, sample: Sample) -> nn.Module:
        """Return the cell of a sample, with fresh weights.

        Args:
            sample: value of each label.

        Returns:
            A `NasBench101FixedCell`.
        """
        features = self.in_features, self.out_features
        return _fixed(sample, self.mutables, self.op_candidates, features, self.projection)

    def forward(self, inputs: Tensor) -> Tensor:
        """Raise RuntimeError: a cell has no modules before it is frozen.

        Args:
            inputs: the input.

        Returns:
            Nothing.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            f"cell {str(self.label)!r} must be frozen before it computes, got an input of shape "
            f"{tuple(inputs.shape)}: call freeze(sample) of the space"
        )


class NasBench101FixedCell(nn.Module):
    """Cell of one graph of NAS-Bench-101: operations, and projections of its input.

    Args:
        graph: pruned graph.
        op_candidates: functions of the number of features, by name.
        in_features: channels of the input.
        out_features: channels of the output.
        projection: function of the numbers of channels: module between input and a vertex.

    Examples:
        >>> graph = NasBench101Graph(("conv",), ((0,), (1,)))
        >>> cell = NasBench101FixedCell(
        ...     graph, {"conv": lambda n: nn.Conv2d(n, n, 1)}, 2, 4, lambda i, o: nn.Conv2d(i, o, 1)
        ... )
        >>> cell(torch.zeros(1, 2, 3, 3)).shape
        torch.Size([1, 4, 3, 3])
    """

    def __init__(
        self,
        graph: NasBench101Graph,
        op_candidates: Mapping[Any, OperatorOfFeatures],
        in_features: int,
        out_features: int,
        projection: Projection,
    ) -> None:
        super().__init__()
        self.graph = graph
        channels = vertex_channels(in_features, out_features, graph.inputs)
        self.channels = channels
        self.operations = nn.ModuleList(
            op_candidates[name](channels[vertex]) for vertex, name in enumerate(graph.operations, 1)
        )
        self.projections = nn.ModuleDict(
            {
                str(vertex): projection(in_features, channels[vertex])
                for vertex, read in enumerate(graph.inputs, 1)
                if 0 in read
            }
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the concatenated vertices that the output reads, plus the projected input if read.

        Args:
            inputs: `(batch, in_features, height, width)`.

        Returns:
            `(batch, out_features, height, width)`.
        """
        tensors = [inputs]
        for vertex, operation in enumerate(self.operations, 1):
            width = self.channels[vertex]
            parts = [
                # A vertex that is wider than its reader loses the channels behind.
                self.projections[str(vertex)](inputs) if one == 0 else tensors[one][:, :width]
                for one in self.graph.inputs[vertex - 1]
            ]
            tensors.append(operation(sum(parts[1:], parts[0])))
        read = self.graph.inputs[-1]
        parts = [tensors[one] for one in read if one != 0]
        outputs = [torch.cat(parts, 1)] if parts else []
        if 0 in read:
            outputs.append(self.projections[str(len(self.graph.inputs))](inputs))
        return sum(outputs[1:], outputs[0])


def _named(
    candidates: Mapping[str, OperatorOfFeatures] | Sequence[OperatorOfFeatures],
) -> dict[Any, OperatorOfFeatures]:
    named: dict[Any, OperatorOfFeatures] = (
        dict(candidates) if isinstance(candidates, Mapping) else dict(enumerate(candidates))
    )
    if not named:
        raise ValueError("op_candidates must not be empty")
    return named


def _choices(names: list[Any], max_num_nodes: int, max_num_edges: int, label: str) -> list[Any]:
    """Return the labelled choices of a cell, and at last its constraint; raise for bad limits."""
    if max_num_nodes < MIN_VERTICES or max_num_edges < 1:
        raise ValueError(
            f"max_num_nodes must be >= {MIN_VERTICES} and max_num_edges >= 1, got {max_num_nodes} "
            f"and {max_num_edges}"
        )
    numbers = range(MIN_VERTICES, max_num_nodes + 1)
    # There are more graphs of more vertices: each one more doubles the probability.
    total = sum(2**number for number in numbers)
    with label_scope(label):
        return [
            Categorical(numbers, weights=[2**one / total for one in numbers], label="num_nodes"),
            *(Categorical(names, label=f"op{at}") for at in range(1, max_num_nodes - 1)),
            *(CategoricalMultiple(range(at), label=f"input{at}") for at in range(1, max_num_nodes)),
            NasBench101CellConstraint(max_num_nodes, max_num_edges, label="final"),
        ]


def _fixed(
    sample: Sample,
    choices: Sequence[Any],
    candidates: Mapping[Any, OperatorOfFeatures],
    features: tuple[int, int],
    projection: Projection,
) -> NasBench101FixedCell:
    *dimensions, constraint = choices
    for dimension in dimensions:
        dimension.validate(sample)
    found = constraint.graph(sample)
    if isinstance(found, SampleValidationError):
        raise found.inside(constraint.label)
    return NasBench101FixedCell(found, candidates, *features, projection)
