"""Pruner of channels near the geometric median of their layer."""

from torch import Tensor

from nni.compression.base.pruner import TargetKey
from nni.compression.config.settings import ConfigListError
from nni.compression.masking.metrics import distance_sums
from nni.compression.pruning.channel_pruner import ChannelPruner


class FPGMPruner(ChannelPruner):
    """Pruner of the output channels that are nearest to all others of their layer, and bias.

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
        ConfigListError: the configuration breaks a rule, or a `granularity` means single elements.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `mode` is unknown, or there is no `dummy_input`.

    Source: He et al., Filter Pruning via Geometric Median for Deep Convolutional Neural Networks
    Acceleration, 2019.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import FPGMPruner
        >>> model = nn.Sequential(nn.Linear(1, 4, bias=False))
        >>> model[0].weight.data = torch.tensor([[0.0], [1.0], [10.0], [0.5]])
        >>> pruner = FPGMPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.25}])
        >>> _, masks = pruner.compress()
        >>> masks["0"]["weight"].flatten()
        tensor([1., 0., 1., 1.])
    """

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:  # noqa: D102 - see the base
        return {key: distance_sums(blocks) for key, blocks in self.weight_blocks()}

    def _check_targets(self) -> None:
        super()._check_targets()
        for name, target in self.own_targets():
            granularity = self._wrappers[name].targets[target].granularity
            if not isinstance(granularity, str) and set(granularity) == {1}:
                raise ConfigListError(
                    f"config_list target {target} of {name}:",
                    f"has the granularity {granularity}; FPGMPruner needs blocks of several "
                    "elements, such as out_channel",
                )
