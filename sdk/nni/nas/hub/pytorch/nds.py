"""Spaces of normal and reduction cells: `NDS`, and those of five papers."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal

from torch import Tensor, nn

from nni.mutable import Categorical, CategoricalMultiple, MutableExpression, label_scope
from nni.nas.hub.pytorch.nds_channels import (
    STAGES,
    channels_of,
    count_loose_ends,
    stage_length,
)
from nni.nas.hub.pytorch.nds_operators import OPERATORS, DropPath, FactorizedReduce
from nni.nas.hub.pytorch.searched_models import SpaceWithSearchedModels
from nni.nas.nn.pytorch import (
    Cell,
    MutableBatchNorm2d,
    MutableConv2d,
    MutableLinear,
    Repeat,
)

Dataset = Literal["cifar", "imagenet"]
Merge = Literal["all", "loose_end"]

NUM_LABELS: Final = {"cifar": 10, "imagenet": 1000}
WIDTHS: Final = (16, 24, 32)
NUM_CELLS: Final = (4, 8, 12, 16, 20)
PREDECESSORS: Final = 2
OPERATORS_PER_NODE: Final = 2
_STEM_FACTOR: Final = 3
"""Channels of the stem for small images, relative to the width."""


class NDS(SpaceWithSearchedModels, label_prefix="nds"):
    """Network of cells whose operators and connections are searched, and its width and depth.

    There are two cells, `normal` and `reduce`; all copies of one share its labels, those of
    `nni.nas.nn.pytorch.Cell`. Reduction cells halve the resolution at one and two thirds of the
    depth, and double the channels. `width` and `depth` are dimensions where several are given.
    The labels begin with the name of the class in lower case.

    Args:
        op_candidates: names of operators, see `nni.nas.hub.pytorch.nds_operators.OPERATORS`.
        merge_op: nodes that the output of a cell concatenates, see `Cell`.
        num_nodes_per_cell: number of nodes.
        width: channels of a node in the first stage; one number, or several to choose from.
        num_cells: number of cells, from 3; one, or several to choose from.
        dataset: `cifar` of small images and 10 classes, or `imagenet` with a stem that reduces
            large ones, and 1000 classes.
        auxiliary_loss: whether `forward` also returns the logits of a second head in training.
        drop_path_prob: probability that the output of an operator is dropped in training.

    Raises:
        ValueError: an argument is unknown or too small.

    Source: Radosavovic et al., On Network Design Spaces for Visual Recognition, 2019, section 5.

    Examples:
        >>> import torch
        >>> space = NDS(["skip_connect", "conv_1x1"], num_nodes_per_cell=1, width=4, num_cells=3)
        >>> list(space.simplify())
        ['nds/normal/op_2_0', ... 'nds/reduce/input_2_1']
        >>> space(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        op_candidates: Sequence[str],
        merge_op: Merge = "all",
        num_nodes_per_cell: int = 4,
        width: Sequence[int] | int = WIDTHS,
        num_cells: Sequence[int] | int = NUM_CELLS,
        dataset: Dataset = "cifar",
        auxiliary_loss: bool = False,  # noqa: FBT001, FBT002 - as specified
        drop_path_prob: float = 0.0,
    ) -> None:
        super().__init__()
        _check(op_candidates, num_cells, dataset)
        channels, depth = self._choice("width", width), self._choice("depth", num_cells)
        stem = _STEM_FACTOR * channels if dataset == "cifar" else channels
        loose = [_outputs(kind, merge_op, num_nodes_per_cell) for kind in ("normal", "reduce")]
        sizes = (depth, channels, stem, *loose)
        self.stem = _stem(dataset, channels, stem)
        self.stages = nn.ModuleList(
            Repeat(
                partial(
                    _block,
                    stage,
                    sizes,
                    list(op_candidates),
                    merge_op,
                    num_nodes_per_cell,
                    drop_path_prob,
                ),
                stage_length(depth, stage),
            )
            for stage in range(STAGES)
        )
        self.auxiliary = (
            _head(channels_of(2, -1, *sizes), dataset, hidden=128) if auxiliary_loss else None
        )
        self.head = _head(channels_of(3, -1, *sizes), dataset)

    def forward(self, inputs: Tensor) -> Any:  # noqa: ANN401 - one tensor or two
        """Return the logits; in training with auxiliary loss, a pair with the auxiliary ones.

        Args:
            inputs: `(batch, 3, height, width)`.

        Returns:
            `(batch, num_labels)`; in training with an auxiliary loss a pair of such tensors, of
            which the second one is that of the auxiliary head.
        """
        first = self.stem[0](inputs)
        states = (first, self.stem[1](first))
        auxiliary = None
        for stage, cells in enumerate(self.stages, start=1):
            states = cells(states)
            if stage == STAGES - 1 and self.auxiliary is not None and self.training:
                auxiliary = self.auxiliary(states[1])
        output = self.head(states[1])
        return output if auxiliary is None else (output, auxiliary)

    def _choice(self, label: str, values: Sequence[int] | int) -> int | MutableExpression:
        if isinstance(values, int):
            return values
        choice: Categorical = self.add_mutable(Categorical(values, label=label))
        return choice


class _CellBlock(nn.Module):
    """Module that maps the last two outputs to the last one and a cell's output of both."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, states: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return states[1], self.cell(list(states))


class _Preprocessor(nn.Module):
    """Projections of the last two outputs to the channels of a cell, in the size of the last."""

    def __init__(self, before_last: Any, last: Any, channels: Any) -> None:  # noqa: ANN401 - or mutable
        super().__init__()
        self.before_last = FactorizedReduce(before_last, channels)
        self.last = FactorizedReduce(last, channels)

    def forward(self, states: list[Tensor]) -> list[Tensor]:
        before_last, last = states
        size = last.shape[2]
        return [self.before_last(before_last, size), self.last(last, size)]


def _block(
    stage: int,
    sizes: tuple[Any, ...],
    op_candidates: list[str],
    merge_op: Merge,
    num_nodes: int,
    drop_path_prob: float,
    index: int,
) -> nn.Module:
    """Return the cell at one position; the first of a stage, except the first stage, reduces."""
    channels = sizes[1] * 2**stage
    reduces = stage > 0 and index == 0
    before_last, last = (channels_of(stage, index - back, *sizes) for back in (2, 1))
    cell = Cell(
        {
            name: partial(_operator, name, channels, drop_path_prob, reduces)
            for name in op_candidates
        },
        num_nodes,
        OPERATORS_PER_NODE,
        PREDECESSORS,
        merge_op,
        preprocessor=_Preprocessor(before_last, last, channels),
        label="reduce" if reduces else "normal",
    )
    return _CellBlock(cell)


def _operator(
    name: str,
    channels: Any,  # noqa: ANN401 - number or expression
    drop_path_prob: float,
    reduces: bool,  # noqa: FBT001
    node: int,
    index: int,
    read: int | None,
) -> nn.Module:
    """Return an operator; of a reduction cell, those on the inputs of the cell have stride 2."""
    del node, index
    on_input = read is None or read < PREDECESSORS  # unknown: the default is the first input
    operator = OPERATORS[name](channels, 2 if reduces and on_input else 1)
    if drop_path_prob == 0 or isinstance(operator, nn.Identity):
        return operator
    return nn.Sequential(operator, DropPath(drop_path_prob))


def _outputs(kind: str, merge_op: Merge, num_nodes: int) -> int | MutableExpression:
    """Return how many nodes a cell's output concatenates: all, or an expression of the unused."""
    if merge_op == "all":
        return num_nodes
    with label_scope(kind):
        inputs = [
            CategoricalMultiple(range(node), n_chosen=1, label=f"input_{node}_{index}")
            for node in range(PREDECESSORS, PREDECESSORS + num_nodes)
            for index in range(OPERATORS_PER_NODE)
        ]
    return MutableExpression(count_loose_ends, [PREDECESSORS, num_nodes, *inputs])


def _stem(dataset: str, width: Any, stem: Any) -> nn.ModuleList:  # noqa: ANN401 - or mutable
    """Return two modules that run one after the other; the first cell reads both outputs."""
    if dataset == "cifar":
        conv = MutableConv2d(3, stem, 3, padding=1, bias=False)
        return nn.ModuleList([nn.Sequential(conv, MutableBatchNorm2d(stem)), nn.Identity()])
    half = width // 2
    first = nn.Sequential(
        MutableConv2d(3, half, 3, stride=2, padding=1, bias=False),
        MutableBatchNorm2d(half),
        nn.ReLU(),
        MutableConv2d(half, width, 3, stride=2, padding=1, bias=False),
        MutableBatchNorm2d(width),
    )
    second = nn.Sequential(
        nn.ReLU(),
        MutableConv2d(width, width, 3, stride=2, padding=1, bias=False),
        MutableBatchNorm2d(width),
    )
    return nn.ModuleList([first, second])


def _head(channels: Any, dataset: str, hidden: int | None = None) -> nn.Sequential:  # noqa: ANN401 - or mutable
    layers: list[nn.Module] = []
    if hidden is not None:
        layers = [
            nn.ReLU(),
            MutableConv2d(channels, hidden, 1, bias=False),
            MutableBatchNorm2d(hidden),
            nn.ReLU(),
        ]
        channels = hidden
    return nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        MutableLinear(channels, NUM_LABELS[dataset]),
    )


def _check(op_candidates: Sequence[str], num_cells: Sequence[int] | int, dataset: str) -> None:
    unknown = [name for name in op_candidates if name not in OPERATORS]
    if unknown:
        raise ValueError(f"op_candidates must be of {', '.join(OPERATORS)}, got {unknown}")
    least = num_cells if isinstance(num_cells, int) else min(num_cells)
    if least < STAGES:
        raise ValueError(f"num_cells must be >= {STAGES}, one for each stage, got {num_cells}")
    if dataset not in NUM_LABELS:
        raise ValueError(f"dataset must be one of {', '.join(NUM_LABELS)}, got {dataset!r}")
