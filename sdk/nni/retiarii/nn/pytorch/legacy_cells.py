"""Repetitions and cells with the arguments and labels of NNI 2.x: `Repeat` and `Cell`."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from torch import nn

from nni.mutable import Sample
from nni.nas.nn.pytorch import Cell, InputChoice, Repeat
from nni.retiarii.deprecation import warn_once
from nni.retiarii.nn.pytorch.choices import LegacyInputChoice
from nni.retiarii.wrapped_models import mutation_label

LegacyBlocks = (
    nn.Module | Callable[[], nn.Module] | Sequence[nn.Module] | Sequence[Callable[[], nn.Module]]
)
"""Module, function without arguments that returns one, or a list of these."""


class LegacyRepeat(Repeat):
    """`Repeat` of NNI 2.x: functions of blocks take no argument, and the least depth is 1.

    Args:
        blocks: module, which is copied; function that returns one; or a list of these.
        depth: number of blocks, or `(least, greatest)`, both included.
        label: name of the choice of the depth; None for an automatic one.

    Raises:
        ValueError: the least depth is less than 1.
    """

    def __init__(
        self, blocks: LegacyBlocks, depth: int | tuple[int, int], label: str | None = None
    ) -> None:
        warn_once("nn.pytorch.Repeat", "nni.nas.nn.pytorch.Repeat")
        _check_depth(depth)
        super().__init__(_of_position(blocks), depth, label=_depth_label(depth, label))

    @classmethod
    def create_fixed_module(  # type: ignore[override]  # the arguments of its time
        cls,
        sample: Sample,
        blocks: LegacyBlocks,
        depth: int | tuple[int, int],
        label: str | None = None,
    ) -> nn.Module:
        """Return the sequence of as many blocks as a sample says; raise if the least depth is < 1.

        Args:
            sample: value of each label.
            blocks: as for the constructor, and so the following.
            depth: number of blocks.
            label: name of the choice of the depth.
        """
        _check_depth(depth)
        return super().create_fixed_module(
            sample, _of_position(blocks), depth, label=_depth_label(depth, label)
        )


class LegacyCell(Cell):
    """`Cell` of NNI 2.x: its labels are `cell__op_0_0`, `cell__input_0_0`, …; nodes count from 0.

    Args:
        op_candidates: list of modules, dict from name to module, or a function that returns one.
        num_nodes: number of nodes.
        num_ops_per_node: operators that are summed in each node.
        num_predecessors: number of inputs.
        merge_op: `all`.
        label: name of the cell; None for an automatic one.
    """

    input_choice: ClassVar[type[InputChoice]] = LegacyInputChoice

    def __init__(
        self,
        op_candidates: Any,  # noqa: ANN401 - as that of `Cell`
        num_nodes: int,
        num_ops_per_node: int = 1,
        num_predecessors: int = 1,
        merge_op: Literal["all"] = "all",
        label: str | None = None,
    ) -> None:
        warn_once("nn.pytorch.Cell", "nni.nas.nn.pytorch.Cell")
        super().__init__(
            op_candidates,
            num_nodes,
            num_ops_per_node,
            num_predecessors,
            merge_op,
            label=mutation_label(label),
        )

    def label_of(self, kind: Literal["op", "input"], node: int, index: int) -> str:
        """Return the label of an operator, or of the choice of the tensor that it reads."""
        return f"{self.label}__{kind}_{node - self.num_predecessors}_{index}"


def _check_depth(depth: int | tuple[int, int]) -> None:
    least = depth if isinstance(depth, int) else depth[0]
    if least < 1:
        raise ValueError(f"depth must be >= 1, got {depth!r}")


def _depth_label(depth: int | tuple[int, int], label: str | None) -> str | None:
    return label if isinstance(depth, int) else mutation_label(label)


def _of_position(blocks: LegacyBlocks) -> Any:  # noqa: ANN401 - the same form
    """Return the blocks; functions are wrapped, so that they take and ignore their position."""
    if isinstance(blocks, nn.Module):
        return blocks
    if isinstance(blocks, Sequence):
        return [_of_position(one) for one in blocks]
    build = blocks
    return lambda position: build()
