"""Super-modules that compute the one architecture which is sampled at present."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from torch import Tensor, nn

from nni.mutable import Label, LabeledMutable, Sample
from nni.nas.nn.pytorch import Cell, InputChoice, LayerChoice, MutableModule, Repeat
from nni.nas.nn.pytorch.inputs import check_inputs, reduced
from nni.nas.oneshot.pytorch.architecture import SampledPath
from nni.nas.oneshot.pytorch.cell_operators import built_operators, is_built_by_input
from nni.nas.oneshot.pytorch.supernet import HookResult, Memo, SuperModule, converted


class PathLayerChoice(SuperModule, LayerChoice):
    """Layer choice that computes the sampled candidate, of any arguments."""

    path: SampledPath

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what candidates take
        """Return the output of the sampled candidate."""
        candidate = self._modules[str(self.path.sample[self.label])]
        assert candidate is not None
        return candidate(*args, **kwargs)


class PathInputChoice(SuperModule, InputChoice):
    """Input choice that reduces the sampled inputs."""

    path: SampledPath

    def forward(self, candidate_inputs: Sequence[Tensor]) -> Any:  # noqa: ANN401 - see ChosenInputs
        """Return the sampled inputs, reduced to one tensor.

        Args:
            candidate_inputs: all tensors.
        """
        check_inputs(candidate_inputs, self.n_candidates)
        chosen = self.path.sample[self.label]
        return reduced([candidate_inputs[index] for index in chosen], self.reduction)


class PathRepeat(SuperModule, Repeat):
    """Repetition that computes the sampled number of blocks."""

    path: SampledPath

    def forward(self, inputs: Any) -> Any:  # noqa: ANN401 - what blocks take
        """Return the output of the first blocks, as many as the sample says."""
        choice = self.depth_choice
        sample = self.path.sample
        if isinstance(choice, int):
            depth = choice
        elif isinstance(choice, LabeledMutable):
            depth = sample[choice.label]
        else:
            depth = int(choice.freeze(sample))
        for block in islice(self.blocks, depth):
            inputs = block(inputs)
        return inputs


class PathCell(SuperModule, Cell):
    """Cell whose outputs are those of the sample; its choices are super-modules of their own."""

    path: SampledPath

    @property
    def output_node_indices(self) -> list[int]:
        """Indices of the nodes that no operator of the sample reads; all for `merge_op="all"`."""
        nodes = range(self.num_predecessors, self.num_predecessors + self.num_nodes)
        if self.merge_op == "all":
            return list(nodes)
        sample = self.path.sample
        read = {index for label in self._input_labels() for index in sample[label]}
        return [node for node in nodes if node not in read]

    @output_node_indices.setter
    def output_node_indices(self, value: list[int]) -> None:
        del value  # a copy of a cell has the indices of its own sample

    def _input_labels(self) -> list[str]:
        return [
            choice.label
            for choices in self.inputs
            if isinstance(choices, nn.ModuleList)
            for choice in choices
            if isinstance(choice, InputChoice)
        ]

    def freeze(self, sample: Sample) -> Cell:
        """Return the cell of a sample, with the weights of this one."""
        return converted(Cell, self, _indexed=False).freeze(sample)


class PathOperator(SuperModule, MutableModule):
    """Operator of a cell that is built differently for each input, and computes the sampled one.

    Args:
        variants: operator for each input.
        choice: choice of the input.
        path: the present sample.
    """

    def __init__(
        self, variants: Sequence[nn.Module], choice: InputChoice, path: SampledPath
    ) -> None:
        super().__init__()
        self.variants = nn.ModuleList(variants)
        self.input_label = choice.label
        self.path = path

    def forward(self, inputs: Any) -> Any:  # noqa: ANN401 - what operators take
        """Return the output of the operator that is built for the sampled input."""
        return self.variants[self.path.sample[self.input_label][0]](inputs)

    def freeze(self, sample: Sample) -> Any:  # noqa: ANN401 - any module
        """Return the operator for the chosen input, frozen."""
        variant = self.variants[sample[self.input_label][0]]
        return variant.freeze(sample) if isinstance(variant, MutableModule) else variant


def path_hook(module: nn.Module, name: str, memo: Memo, arguments: dict[str, Any]) -> HookResult:
    """Return the super-module of a primitive that computes the sample; None for other modules.

    Args:
        module: any module.
        name: its path from the root.
        memo: not used.
        arguments: `path`, the `SampledPath`.

    Returns:
        The super-module; None for modules that are no primitives.

    Raises:
        TypeError: an `InputChoice` chooses any subset, or does not reduce.
    """
    del memo
    path: SampledPath = arguments["path"]
    match module:
        case SuperModule():
            return None
        case LayerChoice():
            return converted(PathLayerChoice, module, path=path)
        case InputChoice():
            if module.n_chosen is None or module.reduction == "none":
                raise TypeError(
                    f"InputChoice at {name!r} must have a number n_chosen and a reduction other "
                    f"than 'none' here, got n_chosen={module.n_chosen}, "
                    f"reduction={module.reduction!r}"
                )
            return converted(PathInputChoice, module, path=path)
        case Repeat():
            return converted(PathRepeat, module, path=path)
        case Cell():
            return _path_cell(module, path)
    return None


def _path_cell(cell: Cell, path: SampledPath) -> PathCell:
    """Return the super-module of a cell, whose operators are built for each input if need be."""
    made = converted(PathCell, cell, path=path)
    if is_built_by_input(cell):
        made.ops = nn.ModuleList()
        for node, choices in enumerate(cell.inputs, cell.num_predecessors):
            assert isinstance(choices, nn.ModuleList)
            made.ops.append(nn.ModuleList(_operators(cell, node, choices, path)))
        made.ops.train(cell.training)
    return made


def _operators(
    cell: Cell, node: int, choices: nn.ModuleList, path: SampledPath
) -> Iterator[PathOperator]:
    """Yield the operators of a node, each built for every input."""
    for index, choice in enumerate(choices):
        assert isinstance(choice, InputChoice)
        label = Label(cell.label_of("op", node, index))
        variants = [
            LayerChoice(built_operators(cell, node, index, read), label=label)
            for read in range(node)
        ]
        yield PathOperator(variants, choice, path)
