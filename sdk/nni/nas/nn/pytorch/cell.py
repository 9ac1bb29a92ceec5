"""Directed acyclic graph of operators and connections, both searched: `Cell`."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal

import torch
from torch import Tensor, nn

from nni.common.serializer.tracing import attach
from nni.mutable import Categorical, Sample, auto_label, label_scope
from nni.mutable.labels import Label
from nni.nas.nn.pytorch.base import MutableModule, frozen_copy, module_label, recursive_freeze
from nni.nas.nn.pytorch.choice import LayerChoice
from nni.nas.nn.pytorch.inputs import ChosenInputs, InputChoice
from nni.nas.nn.pytorch.parametrized import placed_like
from nni.nas.space.context import current_model, model_context
from nni.nas.utils.original_names import record_place

__all__ = ["Cell"]

OperatorFactory = Callable[[int, int, int | None], nn.Module]
"""Function of the node, the operator in the node, and the tensor it reads, if known; indices."""
Operators = Sequence[nn.Module | OperatorFactory] | Mapping[str, nn.Module | OperatorFactory]
Merge = Literal["all", "loose_end"]

_MERGES: Final = ("all", "loose_end")
_RECORD: Final = "trace_kwargs"


class Cell(MutableModule):
    """Cell of the kind that NASNet introduced: nodes that sum operators on earlier tensors.

    The tensors are those of the predecessors, then those of the nodes. Each node is the sum of
    `num_ops_per_node` operators; each operator, and the tensor that it reads, is a choice. With
    `label="cell"`, operator `k` of node `i` has the label `cell/op_i_k`, whose values are names of
    candidates (`"0"`, `"1"`, … for a list), and `cell/input_i_k`, whose values are lists of one
    index. Nodes are counted from `num_predecessors`, as tensors are.

    Args:
        op_candidates: list of modules, which are copied for each operator; dict from name to
            module; or a function that returns one of these. In place of a module may stand a
            function of the index of the node, that of the operator inside the node, and that of
            the tensor which it reads, None in an unfrozen cell. A cell with such functions builds
            its operators anew when it is frozen.
        num_nodes: number of nodes.
        num_ops_per_node: operators that are summed in each node.
        num_predecessors: number of inputs.
        merge_op: `all` concatenates all nodes; `loose_end` those that no later node reads.
        preprocessor: module from the list of inputs to a list of as many tensors.
        postprocessor: module from the merged tensor and the list of preprocessed inputs to the
            output.
        concat_dim: dimension along which nodes are concatenated.
        label: name of the cell, the scope of the labels above.

    Raises:
        ValueError: a number is not positive, there is no candidate, or `merge_op` is unknown.
        TypeError: a candidate is no module.

    Examples:
        >>> cell = Cell([nn.Linear(4, 4), nn.Identity()], num_nodes=2, label="cell")
        >>> list(cell.simplify())
        ['cell/op_1_0', 'cell/op_2_0', 'cell/input_1_0', 'cell/input_2_0']
        >>> cell(torch.zeros(3, 4)).shape
        torch.Size([3, 8])
    """

    input_choice: ClassVar[type[InputChoice]] = InputChoice
    """Class of the choice of the tensor that an operator reads."""

    def __init__(  # noqa: PLR0913 - as specified
        self,
        op_candidates: Operators | Callable[[], Operators],
        num_nodes: int,
        num_ops_per_node: int = 1,
        num_predecessors: int = 1,
        merge_op: Merge = "all",
        preprocessor: nn.Module | None = None,
        postprocessor: nn.Module | None = None,
        concat_dim: int = 1,
        *,
        label: str | None = None,
    ) -> None:
        super().__init__()
        _check(num_nodes, num_ops_per_node, num_predecessors, merge_op)
        self.num_nodes = num_nodes
        self.num_ops_per_node = num_ops_per_node
        self.num_predecessors = num_predecessors
        self.merge_op: Merge = merge_op
        self.concat_dim = concat_dim
        self.preprocessor = nn.Identity() if preprocessor is None else preprocessor
        self.postprocessor = postprocessor
        self.label: str = module_label(label, "Cell")
        self.ops = nn.ModuleList()
        """Operators of each node: `nn.ModuleList` of `LayerChoice`; of modules if frozen."""
        self.inputs = nn.ModuleList()
        """Inputs of each node: `nn.ModuleList` of `InputChoice`; of `ChosenInputs` if frozen."""
        self._indexed = _build_nodes(self, op_candidates)
        self.output_node_indices: list[int] = _outputs(self)
        """Indices of the tensors that are concatenated; those of the default if not frozen."""
        if current_model() is None:
            attach(self, Cell, ([], {"op_candidates": op_candidates}))

    def label_of(self, kind: Literal["op", "input"], node: int, index: int) -> str:
        """Return the label of an operator, or of the choice of the tensor that it reads.

        Args:
            kind: `op` or `input`.
            node: index of the node, counted from `num_predecessors`.
            index: index of the operator in the node.

        Returns:
            The complete label.
        """
        return f"{self.label}/{kind}_{node}_{index}"

    def freeze(self, sample: Sample) -> "Cell":
        """Return a new cell of a sample's operators and inputs; itself if it is frozen.

        Operators that functions of the input build are new; others are the candidates.

        Args:
            sample: value of each label.

        Returns:
            A cell without choices; this one if it has none.
        """
        self.validate(sample)
        frozen, changed = self._rebuilt(sample) if self._indexed else frozen_copy(self, sample)
        if changed:
            assert isinstance(frozen, Cell)
            for name in ("trace_symbol", "trace_args", _RECORD):
                vars(frozen).pop(name, None)
            frozen.output_node_indices = _outputs(frozen)
            return frozen
        return self

    def _rebuilt(self, sample: Sample) -> tuple[nn.Module, bool]:
        """Return a new cell of a sample, and true; the cell itself, and false, if it is frozen."""
        record = vars(self).get(_RECORD)
        if record is None:
            return self, False  # it was frozen
        preprocessor, postprocessor = (
            None if one is None else copy.deepcopy(recursive_freeze(one, sample)[0])
            for one in (self.preprocessor, self.postprocessor)
        )
        with model_context(sample):
            cell = Cell(
                record["op_candidates"],
                self.num_nodes,
                self.num_ops_per_node,
                self.num_predecessors,
                self.merge_op,
                preprocessor,
                postprocessor,
                self.concat_dim,
                label=self.label,
            )
        return placed_like(cell, self), True

    def forward(self, *inputs: Any) -> Any:  # noqa: ANN401 - tensors, or one list of them
        """Return the output nodes concatenated, passed through the postprocessor if there is one.

        Args:
            *inputs: one tensor for each predecessor, or one list of them.

        Returns:
            The nodes that are merged, concatenated along `concat_dim`, after the postprocessor.

        Raises:
            ValueError: the number of tensors is not `num_predecessors`.
        """
        given: Sequence[Tensor] = (
            inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
        )
        if len(given) != self.num_predecessors:
            raise ValueError(
                f"inputs of cell {str(self.label)!r} must be {self.num_predecessors} tensors, got "
                f"{len(given)}"
            )
        processed = list(self.preprocessor(list(given)))
        states = list(processed)
        for operators, choices in zip(self.ops, self.inputs, strict=True):
            assert isinstance(operators, nn.ModuleList)
            assert isinstance(choices, nn.ModuleList)
            outputs = [
                operator(choice(states))
                for operator, choice in zip(operators, choices, strict=True)
            ]
            states.append(sum(outputs[1:], outputs[0]))
        merged = torch.cat([states[index] for index in self.output_node_indices], self.concat_dim)
        return merged if self.postprocessor is None else self.postprocessor(merged, processed)


def _check(num_nodes: int, num_ops: int, num_predecessors: int, merge_op: str) -> None:
    for name, value in (
        ("num_nodes", num_nodes),
        ("num_ops_per_node", num_ops),
        ("num_predecessors", num_predecessors),
    ):
        if value < 1:
            raise ValueError(f"{name} must be >= 1, got {value}")
    if merge_op not in _MERGES:
        raise ValueError(f"merge_op must be one of {', '.join(_MERGES)}, got {merge_op!r}")


def _build_nodes(cell: Cell, op_candidates: Operators | Callable[[], Operators]) -> bool:
    """Fill a cell with its nodes; return whether operators are functions of their input."""
    indexed = False
    with label_scope(cell.label):
        for node in range(cell.num_predecessors, cell.num_predecessors + cell.num_nodes):
            operators, choices = nn.ModuleList(), nn.ModuleList()
            for index in range(cell.num_ops_per_node):
                choice: nn.Module = cell.input_choice(
                    node, 1, label=Label(cell.label_of("input", node, index))
                )
                read = choice.chosen[0] if isinstance(choice, ChosenInputs) else None
                builders = dict(_builders(op_candidates, node, index, read))
                indexed |= any(one.takes_indices for one in builders.values())
                choices.append(choice)
                operators.append(_operator(builders, Label(cell.label_of("op", node, index))))
            cell.ops.append(operators)
            cell.inputs.append(choices)
    return indexed


class _Builder:
    """Function that builds one candidate of one operator, or copies the given module."""

    def __init__(self, source: nn.Module | OperatorFactory, indices: tuple[Any, ...]) -> None:
        if not callable(source):
            raise TypeError(
                f"op_candidates must be modules, or functions that return them, got {source!r}"
            )
        self.takes_indices = not isinstance(source, nn.Module)
        self._build: Callable[[], Any] = (
            partial(source, *indices) if self.takes_indices else partial(copy.deepcopy, source)
        )

    def __call__(self) -> nn.Module:
        built: nn.Module = self._build()
        return built


def _builders(
    op_candidates: Any,  # noqa: ANN401 - see the class
    *indices: int | None,
) -> Iterator[tuple[str, _Builder]]:
    found = op_candidates
    if callable(found) and not isinstance(found, nn.ModuleList | nn.ModuleDict):
        found = found()
    named = isinstance(found, Mapping | nn.ModuleDict)
    candidates = list(found.items() if named else enumerate(found))
    if not candidates:
        raise ValueError("op_candidates must not be empty")
    for name, source in candidates:
        yield str(name), _Builder(source, indices)


def _operator(builders: dict[str, _Builder], label: str) -> nn.Module:
    """Return the choice among candidates; inside `model_context` only the chosen one, frozen."""
    sample = current_model()
    if sample is None:
        return LayerChoice({name: build() for name, build in builders.items()}, label=label)
    chosen = Categorical(list(builders), label=auto_label(label)).freeze(sample)
    frozen = recursive_freeze(builders[chosen](), sample)[0]
    record_place(frozen, chosen, continues=True)
    return frozen


def _outputs(cell: Cell) -> list[int]:
    """Return the indices of the nodes of the output: all, or those that no other one reads."""
    nodes = range(cell.num_predecessors, cell.num_predecessors + cell.num_nodes)
    if cell.merge_op == "all":
        return list(nodes)
    read = {
        index
        for choices in cell.inputs
        if isinstance(choices, nn.ModuleList)
        for choice in choices
        for index in _chosen(choice)
    }
    return [node for node in nodes if node not in read]


def _chosen(choice: nn.Module) -> list[int]:
    if isinstance(choice, InputChoice):
        return choice.default_inputs
    return choice.chosen if isinstance(choice, ChosenInputs) else []
