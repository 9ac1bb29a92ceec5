"""Pruners of channels by a norm of their weights."""

from typing import ClassVar

from torch import Tensor

from nni.compression.base.pruner import TargetKey
from nni.compression.masking.metrics import norms
from nni.compression.pruning.channel_pruner import ChannelPruner


class NormPruner(ChannelPruner):
    """Base of the pruners that mask the channels of smallest norm."""

    order: ClassVar[float]
    """Order of the norm."""

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:  # noqa: D102 - see the base
        return {key: norms(blocks, self.order) for key, blocks in self.weight_blocks()}


class L1NormPruner(NormPruner):
    """Pruner that masks output channels whose weights have the smallest L1 norm, with their bias.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; `granularity` replaces output channels by other blocks.
        evaluator: trains the model after the masks are set; None if `compress` gets no limits.
        mode: `normal`: each weight reaches its ratio; `global`: the weights of an entry reach it
            together; `dependency_aware`: dependent layers lose the same channels first, see
            `ChannelPruner`.
        dummy_input: inputs of one run of the model, for `dependency_aware` only; None for that of
            the evaluator.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `mode` is unknown, or there is no `dummy_input`.

    Source: Li et al., Pruning Filters for Efficient ConvNets, 2017.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.pruning import L1NormPruner
        >>> model = nn.Sequential(nn.Conv2d(1, 20, 5))
        >>> pruner = L1NormPruner(model, [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}])
        >>> _, masks = pruner.compress()
        >>> pruner.get_pruned_weights()
        {'0': (10, 20)}
    """

    order = 1


class L2NormPruner(NormPruner):
    """Pruner that masks output channels whose weights have the smallest L2 norm, with their bias.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; `granularity` replaces output channels by other blocks.
        evaluator: trains the model after the masks are set; None if `compress` gets no limits.
        mode: `normal`: each weight reaches its ratio; `global`: the weights of an entry reach it
            together; `dependency_aware`: dependent layers lose the same channels first, see
            `ChannelPruner`.
        dummy_input: inputs of one run of the model, for `dependency_aware` only; None for that of
            the evaluator.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `mode` is unknown, or there is no `dummy_input`.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.pruning import L2NormPruner
        >>> model = nn.Sequential(nn.Linear(3, 4))
        >>> pruner = L2NormPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
        >>> _, masks = pruner.compress()
        >>> int(masks["0"]["bias"].sum())
        2
    """

    order = 2
