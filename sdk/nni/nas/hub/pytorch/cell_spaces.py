"""The spaces of five papers that search normal and reduction cells."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from nni.nas.hub.pytorch.nds import NDS, NUM_CELLS, WIDTHS, Dataset, Merge
from nni.nas.hub.pytorch.searched_models import SearchedModel

_DARTS_V2: Final = {
    "normal": (
        ("sep_conv_3x3", 0), ("sep_conv_3x3", 1), ("sep_conv_3x3", 0), ("sep_conv_3x3", 1),
        ("sep_conv_3x3", 1), ("skip_connect", 0), ("skip_connect", 0), ("dil_conv_3x3", 2),
    ),
    "reduce": (
        ("max_pool_3x3", 0), ("max_pool_3x3", 1), ("skip_connect", 2), ("max_pool_3x3", 1),
        ("max_pool_3x3", 0), ("skip_connect", 2), ("skip_connect", 2), ("max_pool_3x3", 1),
    ),
}  # fmt: skip
"""Published cells of DARTS of second order: operator and input, two for each node."""


class CellSpaceOfPaper(NDS, label_prefix="cells"):
    """Base of NDS spaces whose operators, nodes and merging of outputs a paper has fixed.

    Args:
        width: see `NDS`.
        num_cells: see `NDS`.
        dataset: see `NDS`.
        auxiliary_loss: see `NDS`.
        drop_path_prob: see `NDS`.

    Examples:
        >>> class Tiny(CellSpaceOfPaper, label_prefix="tiny"):
        ...     operators = ("skip_connect", "conv_1x1")
        ...     nodes = 1
        >>> len(Tiny(width=4, num_cells=3).simplify())
        8
    """

    operators: ClassVar[tuple[str, ...]] = ()
    """Names of the operators."""
    merge: ClassVar[Merge] = "loose_end"
    """Nodes that the output of a cell concatenates."""
    nodes: ClassVar[int] = 5
    """Number of nodes of a cell."""

    def __init__(
        self,
        width: Sequence[int] | int = WIDTHS,
        num_cells: Sequence[int] | int = NUM_CELLS,
        dataset: Dataset = "cifar",
        auxiliary_loss: bool = False,  # noqa: FBT001, FBT002 - as specified
        drop_path_prob: float = 0.0,
    ) -> None:
        super().__init__(
            self.operators,
            self.merge,
            self.nodes,
            width,
            num_cells,
            dataset,
            auxiliary_loss,
            drop_path_prob,
        )


class NASNet(CellSpaceOfPaper, label_prefix="nasnet"):
    """Space of cells of 13 operators, 5 nodes; a cell returns the nodes that no other one reads.

    Args:
        width: see `NDS`.
        num_cells: see `NDS`.
        dataset: see `NDS`.
        auxiliary_loss: see `NDS`.
        drop_path_prob: see `NDS`.

    Source: Zoph et al., Learning Transferable Architectures for Scalable Image Recognition, 2018.

    Examples:
        >>> len(NASNet(width=4, num_cells=3).simplify())
        40
    """

    operators = (
        "skip_connect",
        "conv_3x1_1x3",
        "conv_7x1_1x7",
        "dil_conv_3x3",
        "avg_pool_3x3",
        "max_pool_3x3",
        "max_pool_5x5",
        "max_pool_7x7",
        "conv_1x1",
        "conv_3x3",
        "sep_conv_3x3",
        "sep_conv_5x5",
        "sep_conv_7x7",
    )


class ENAS(CellSpaceOfPaper, label_prefix="enas"):
    """Space of cells of 5 operators, 5 nodes; a cell returns the nodes that no other one reads.

    Args:
        width: see `NDS`.
        num_cells: see `NDS`.
        dataset: see `NDS`.
        auxiliary_loss: see `NDS`.
        drop_path_prob: see `NDS`.

    Source: Pham et al., Efficient Neural Architecture Search via Parameter Sharing, 2018.

    Examples:
        >>> len(ENAS(width=4, num_cells=3).simplify())
        40
    """

    operators = (
        "skip_connect",
        "sep_conv_3x3",
        "sep_conv_5x5",
        "avg_pool_3x3",
        "max_pool_3x3",
    )


class AmoebaNet(CellSpaceOfPaper, label_prefix="amoebanet"):
    """Space of cells of 8 operators, 5 nodes; a cell returns the nodes that no other one reads.

    Args:
        width: see `NDS`.
        num_cells: see `NDS`.
        dataset: see `NDS`.
        auxiliary_loss: see `NDS`.
        drop_path_prob: see `NDS`.

    Source: Real et al., Regularized Evolution for Image Classifier Architecture Search, 2019.

    Examples:
        >>> len(AmoebaNet(width=4, num_cells=3).simplify())
        40
    """

    operators = (
        "skip_connect",
        "sep_conv_3x3",
        "sep_conv_5x5",
        "sep_conv_7x7",
        "avg_pool_3x3",
        "max_pool_3x3",
        "dil_sep_conv_3x3",
        "conv_7x1_1x7",
    )


class PNAS(CellSpaceOfPaper, label_prefix="pnas"):
    """Space of cells of 8 operators and 5 nodes; a cell returns all nodes.

    Args:
        width: see `NDS`.
        num_cells: see `NDS`.
        dataset: see `NDS`.
        auxiliary_loss: see `NDS`.
        drop_path_prob: see `NDS`.

    Source: Liu et al., Progressive Neural Architecture Search, 2018.

    Examples:
        >>> len(PNAS(width=4, num_cells=3).simplify())
        40
    """

    operators = (
        "sep_conv_3x3",
        "sep_conv_5x5",
        "sep_conv_7x7",
        "conv_7x1_1x7",
        "skip_connect",
        "avg_pool_3x3",
        "max_pool_3x3",
        "dil_conv_3x3",
    )
    merge = "all"


class DARTS(CellSpaceOfPaper, label_prefix="darts"):
    """Space of cells of 7 operators and 4 nodes; a cell returns all nodes.

    Args:
        width: see `NDS`.
        num_cells: see `NDS`.
        dataset: see `NDS`.
        auxiliary_loss: see `NDS`.
        drop_path_prob: see `NDS`.

    Source: Liu, Simonyan and Yang, DARTS: Differentiable Architecture Search, 2019.

    Examples:
        >>> len(DARTS(width=4, num_cells=3).simplify())
        32
    """

    operators = (
        "max_pool_3x3",
        "avg_pool_3x3",
        "skip_connect",
        "sep_conv_3x3",
        "sep_conv_5x5",
        "dil_conv_3x3",
        "dil_conv_5x5",
    )
    merge = "all"
    nodes = 4

    @classmethod
    def searched_models(cls) -> dict[str, SearchedModel]:
        """Return by name sample, accuracy and arguments of the network of second-order DARTS."""
        sample: dict[str, Any] = {}
        for cell, chosen in _DARTS_V2.items():
            for at, (name, read) in enumerate(chosen):
                place = f"{2 + at // 2}_{at % 2}"
                sample[f"darts/{cell}/op_{place}"] = name
                sample[f"darts/{cell}/input_{place}"] = [read]
        return {
            "darts-v2": SearchedModel(97.37, "CIFAR-10", sample, {"width": 36, "num_cells": 20})
        }
