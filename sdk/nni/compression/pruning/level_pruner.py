"""Pruner of single elements by magnitude."""

from collections.abc import Mapping, Sequence
from typing import Literal

from torch import Tensor, nn

from nni.compression.base.pruner import Pruner, TargetKey
from nni.compression.evaluators.evaluator import Evaluator
from nni.compression.masking.metrics import norms


class LevelPruner(Pruner):
    """Masks the elements of smallest absolute value, in each weight.

    It masks no bias, unless a bias has a ratio of its own. With a `granularity` the blocks of
    smallest L1 norm are masked.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; every module with a weight can be pruned.
        evaluator: trains the model after the masks are set; None if `compress` gets no limits.
        mode: `normal` only: each weight reaches its ratio.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `mode` is another one.

    Source: Han et al., Learning both Weights and Connections for Efficient Neural Networks, 2015.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import LevelPruner
        >>> model = nn.Sequential(nn.Linear(4, 2))
        >>> pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.75}])
        >>> model, masks = pruner.compress()
        >>> int(masks["0"]["weight"].sum())
        2
    """

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        evaluator: Evaluator | None = None,
        mode: Literal["normal"] = "normal",
    ) -> None:
        if mode != "normal":
            raise ValueError(
                f"mode must be 'normal', got {mode!r}; single elements have no channels that "
                "depend on each other: choose L1NormPruner"
            )
        super().__init__(model, config_list, evaluator)

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:  # noqa: D102 - see the base
        return {key: norms(blocks, 1) for key, blocks in self.weight_blocks()}
