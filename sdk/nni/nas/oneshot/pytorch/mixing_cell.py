"""Cell of a differentiable search: all operators on all earlier tensors, weighted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from nni.mutable import Label, LabeledMutable, Mutable, Sample, SampleValidationError
from nni.nas.nn.pytorch import Cell, MutableModule
from nni.nas.nn.pytorch.base import recursive_freeze
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights
from nni.nas.oneshot.pytorch.cell_operators import built_operators
from nni.nas.oneshot.pytorch.supernet import SuperModule, unchanged
from nni.nas.space import model_context

NONE = "none"
"""Alternative of an edge that computes nothing; it is never exported."""
KINDS: Final[tuple[Literal["op", "input"], ...]] = ("op", "input")
"""What each operator of a cell has a label for."""


class MixingCell(SuperModule, MutableModule):
    """Cell in which each node adds the weighted operators on every earlier tensor.

    An edge is a pair of a node and an earlier tensor, and has the label `cell/edge_i_j`. Its
    weights are those of the operators and of `none`.

    Args:
        cell: cell that it takes the place of.
        weights: logits of the supernet.

    Raises:
        TypeError: the cell merges loose ends only, which depend on the sample.

    Source: Liu, Simonyan, Yang, DARTS: Differentiable Architecture Search, 2019, section 2.
    Departures: a node keeps as many edges as its cell has operators in a node, not always two.
    """

    def __init__(self, cell: Cell, weights: ArchitectureWeights) -> None:
        super().__init__()
        if cell.merge_op != "all":
            raise TypeError(
                "a Cell in a differentiable search must have merge_op='all', got "
                f"{cell.merge_op!r}; which nodes are loose ends is known after the search only"
            )
        self._weights = (weights,)
        self._leaves: dict[str, LabeledMutable] = {**cell.simplify()}
        self._cell = (cell,)
        self.label = cell.label
        self.first_node = cell.num_predecessors
        self.preprocessor = cell.preprocessor
        self.postprocessor = cell.postprocessor
        self.edges = nn.ModuleList(
            nn.ModuleList(
                nn.ModuleDict(built_operators(cell, node, 0, read)) for read in range(node)
            )
            for node in range(self.first_node, self.first_node + cell.num_nodes)
        ).train(cell.training)
        self.training = cell.training
        for node, read, operators in self._named_edges():
            weights.add_choice(edge_label(self.label, node, read), [*operators, NONE])
        cell.ops, cell.inputs = nn.ModuleList(), nn.ModuleList()  # the edges take their place

    def _named_edges(self) -> Iterable[tuple[int, int, nn.ModuleDict]]:
        for node, edges in enumerate(self.edges, self.first_node):
            assert isinstance(edges, nn.ModuleList)
            for read, operators in enumerate(edges):
                assert isinstance(operators, nn.ModuleDict)
                yield node, read, operators

    @property
    def op_labels(self) -> list[tuple[int, int]]:
        """Node and index of each operator of the cell."""
        cell = self._cell[0]
        nodes = range(self.first_node, self.first_node + cell.num_nodes)
        return [(node, index) for node in nodes for index in range(cell.num_ops_per_node)]

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the choices of the cell that this one takes the place of."""
        del is_leaf
        return list(self._leaves.values())

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample is not contained in the cell, None if it is."""
        errors = (leaf.check_contains(sample) for leaf in self._leaves.values())
        return next((error for error in errors if error is not None), None)

    def forward(self, *inputs: Any) -> Any:  # noqa: ANN401 - tensors, or one list of them
        """Return all nodes concatenated, passed through the postprocessor if there is one.

        Args:
            *inputs: one tensor for each predecessor, or one list of them.

        Raises:
            ValueError: the number of tensors is not that of the predecessors.
        """
        given: Sequence[Tensor] = (
            inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
        )
        if len(given) != self.first_node:
            raise ValueError(
                f"inputs of cell {str(self.label)!r} must be {self.first_node} tensors, got "
                f"{len(given)}"
            )
        processed = list(self.preprocessor(list(given)))
        states = list(processed)
        weights = self._weights[0]
        for node, edges in enumerate(self.edges, self.first_node):
            assert isinstance(edges, nn.ModuleList)
            total: Any = None
            for read, operators in enumerate(edges):
                chances = weights.weights(edge_label(self.label, node, read)).unbind()
                for chance, operator in zip(chances, operators.children(), strict=False):
                    with unchanged(states[read], self.label):
                        part = chance * operator(states[read])
                    total = part if total is None else total + part
            states.append(total)
        merged = torch.cat(states[self.first_node :], self._cell[0].concat_dim)
        return merged if self.postprocessor is None else self.postprocessor(merged, processed)

    def best(self) -> Sample:
        """Return the sample that gives each node its edges and operators of largest weights.

        In a node, edges on distinct tensors come first.

        Returns:
            Values of all labels of the cell.
        """
        distribution = self._weights[0].distribution()
        number = self._cell[0].num_ops_per_node
        sample: Sample = {}
        for node, edges in enumerate(self.edges, self.first_node):
            assert isinstance(edges, nn.ModuleList)
            scored = [
                (chance, read, name)
                for read, operators in enumerate(edges)
                for chance, name in zip(
                    distribution[edge_label(self.label, node, read)].tolist(),
                    _names(operators),
                    strict=False,  # the last weight is that of none
                )
            ]
            for index, (_, read, name) in enumerate(strongest(scored, number)):
                sample[self._cell[0].label_of("op", node, index)] = name
                sample[self._cell[0].label_of("input", node, index)] = [read]
        return sample

    def freeze(self, sample: Sample) -> Cell:
        """Return a cell of a sample's operators, taken from this one with their weights."""
        self.validate(sample)
        cell = self._cell[0]
        # The labels of a subclass of Cell may be others.
        own = {
            Cell.label_of(cell, kind, node, index): sample[cell.label_of(kind, node, index)]
            for kind in KINDS
            for node, index in self.op_labels
        }
        with model_context({**sample, **own}):
            frozen = Cell(
                vars(cell)["trace_kwargs"]["op_candidates"],
                cell.num_nodes,
                cell.num_ops_per_node,
                cell.num_predecessors,
                cell.merge_op,
                self._frozen_part(self.preprocessor, sample),
                self._frozen_part(self.postprocessor, sample),
                cell.concat_dim,
                label=Label(cell.label),
            )
        for node, index in self.op_labels:
            read = sample[cell.label_of("input", node, index)][0]
            edges = self.edges[node - self.first_node]
            assert isinstance(edges, nn.ModuleList)
            operator = edges[read][sample[cell.label_of("op", node, index)]]
            operators = frozen.ops[node - self.first_node]
            assert isinstance(operators, nn.ModuleList)
            operators[index] = recursive_freeze(operator, sample)[0]
        for part in (frozen, frozen.ops, *frozen.ops, *frozen.inputs.modules()):
            part.training = self.training  # others are in the supernet, too
        return frozen

    @staticmethod
    def _frozen_part(part: nn.Module | None, sample: Sample) -> Any:  # noqa: ANN401 - a module or None
        return None if part is None else recursive_freeze(part, sample)[0]


def _names(operators: nn.Module) -> list[str]:
    assert isinstance(operators, nn.ModuleDict)
    return list(operators)


def edge_label(cell: str, node: int, read: int) -> str:
    """Return the label of an edge of a cell.

    Args:
        cell: label of the cell.
        node: index of the node.
        read: index of the tensor that the edge reads.
    """
    return f"{cell}/edge_{node}_{read}"


def strongest(
    scored: Sequence[tuple[float, int, str]], number: int
) -> list[tuple[float, int, str]]:
    """Return `number` edges by falling weight, but the first one on each tensor before others.

    Args:
        scored: weight, index of the tensor and name of the operator.
        number: how many to keep.

    Returns:
        The largest weights; first those that are the largest of their tensor, then others.

    Examples:
        >>> strongest([(0.5, 0, "a"), (0.4, 0, "b"), (0.1, 1, "a")], 2)
        [(0.5, 0, 'a'), (0.1, 1, 'a')]
    """
    ordered = sorted(scored, key=lambda one: -one[0])
    seen: set[int] = set()
    first: list[tuple[float, int, str]] = []
    rest: list[tuple[float, int, str]] = []
    for one in ordered:
        (rest if one[1] in seen else first).append(one)
        seen.add(one[1])
    return [*first, *rest][:number]
