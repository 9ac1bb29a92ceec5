"""Pruners of channels by their activations during some training steps."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.pruner import TargetKey
from nni.compression.base.target_space import first_output
from nni.compression.config.settings import ConfigListError
from nni.compression.masking.metrics import channel_means, nonzero_shares
from nni.compression.pruning.channel_pruner import Mode
from nni.compression.pruning.training_pruner import TrainingPruner
from nni.compression.speedup.graph import Inputs

Activation = Literal["relu", "relu6"]

_ACTIVATIONS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {
    "relu": torch.relu,
    "relu6": nn.functional.relu6,
}


class ActivationPruner(TrainingPruner):
    """Base of pruners that rank output channels by their activations in a training.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; output channels of Conv2d and Linear only.
        evaluator: trains the model.
        training_steps: number of passes whose outputs are used, >= 1.
        activation: function that follows the layers: `relu` or `relu6`.
        mode: `normal`: each weight reaches its ratio; `global`: the weights of an entry reach it
            together; `dependency_aware`: dependent layers lose the same channels first, see
            `ChannelPruner`.
        dummy_input: inputs of one run of the model, for `dependency_aware` only; None for that of
            the evaluator.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: an argument is out of range.
    """

    op_types = frozenset({"Conv2d", "Linear"})

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        evaluator: Evaluator,
        training_steps: int,
        activation: Activation = "relu",
        mode: Mode = "normal",
        dummy_input: Inputs | None = None,
    ) -> None:
        if activation not in _ACTIVATIONS:
            raise ValueError(f"activation must be 'relu' or 'relu6', got {activation!r}")
        self._activation = _ACTIVATIONS[activation]
        super().__init__(model, config_list, evaluator, training_steps, mode, dummy_input)

    @abstractmethod
    def channel_metric(self, activations: Tensor) -> Tensor:
        """Return the metric of each channel, which is averaged over the passes.

        Args:
            activations: `(samples, channels, ...)`.

        Returns:
            `(channels,)`.
        """

    def observe(self) -> list[RemovableHandle]:  # noqa: D102 - see the base
        self._sums: dict[str, Tensor] = {}
        self._passes: dict[str, int] = {}
        return [
            wrapper.module.register_forward_hook(partial(self._add, name))
            for name, wrapper in self._wrappers.items()
        ]

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:  # noqa: D102 - see the base
        metrics = {}
        for name, target in self.own_targets():
            if name not in self._sums:
                raise RuntimeError(
                    f"{name} was not called in {self.training_steps} training steps; the training "
                    "must use the layer"
                )
            mean = self._sums[name] / self._passes[name]
            rank = self._wrappers[name].parameter(target).dim()
            metrics[name, target] = mean.reshape(-1, *(1,) * (rank - 1))
        return metrics

    def _add(self, name: str, _module: nn.Module, _inputs: Any, output: object) -> None:  # noqa: ANN401
        if self._passes.get(name, 0) >= self.training_steps:
            return
        activations = self._activation(first_output(output).detach())
        if activations.numel() == 0:
            return  # the mean of an empty batch is NaN
        if type(self._wrappers[name].module) is nn.Linear:
            activations = activations.flatten(0, -2)  # features are the last dimension
        found = self.channel_metric(activations)
        self._sums[name] = self._sums[name] + found if name in self._sums else found
        self._passes[name] = self._passes.get(name, 0) + 1

    def _check_targets(self) -> None:
        super()._check_targets()
        for name, target in self.own_targets():
            chosen = self._wrappers[name].targets[target].granularity
            if target != "weight" or chosen not in {"default", "out_channel"}:
                raise ConfigListError(
                    f"config_list target {target} of {name}:",
                    f"has the granularity {chosen!r}; {type(self).__name__} prunes output channels "
                    "of weights only",
                )


class ActivationAPoZRankPruner(ActivationPruner):
    """Pruner that masks the output channels whose activations are zero most often.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; output channels of Conv2d and Linear only.
        evaluator: trains the model.
        training_steps: number of passes whose outputs are used, >= 1.
        activation: function that follows the layers: `relu` or `relu6`.
        mode: `normal`: each weight reaches its ratio; `global`: the weights of an entry reach it
            together; `dependency_aware`: dependent layers lose the same channels first, see
            `ChannelPruner`.
        dummy_input: inputs of one run of the model, for `dependency_aware` only; None for that of
            the evaluator.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: an argument is out of range.

    Source: Hu et al., Network Trimming: A Data-Driven Neuron Pruning Approach, 2016.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.pruning import ActivationAPoZRankPruner
        >>> model = nn.Sequential(nn.Linear(1, 2))
        >>> model[0].weight.data = torch.tensor([[1.0], [-1.0]])
        >>> model[0].bias.data.zero_()
        tensor([0., 0.])
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         step(torch.ones(4, 1), model)
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.0)
        >>> evaluator = TorchEvaluator(train, sgd, lambda batch, model: model(batch).sum())
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> _, masks = ActivationAPoZRankPruner(model, config_list, evaluator, 1).compress()
        >>> masks["0"]["bias"]
        tensor([1., 0.])
    """

    def channel_metric(self, activations: Tensor) -> Tensor:  # noqa: D102 - see the base
        return nonzero_shares(activations)


class ActivationMeanRankPruner(ActivationPruner):
    """Pruner that masks the output channels whose mean activation is smallest.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; output channels of Conv2d and Linear only.
        evaluator: trains the model.
        training_steps: number of passes whose outputs are used, >= 1.
        activation: function that follows the layers: `relu` or `relu6`.
        mode: `normal`: each weight reaches its ratio; `global`: the weights of an entry reach it
            together; `dependency_aware`: dependent layers lose the same channels first, see
            `ChannelPruner`.
        dummy_input: inputs of one run of the model, for `dependency_aware` only; None for that of
            the evaluator.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: an argument is out of range.

    Source: Molchanov et al., Pruning Convolutional Neural Networks for Resource Efficient
    Inference, 2017.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.pruning import ActivationMeanRankPruner
        >>> model = nn.Sequential(nn.Linear(1, 2))
        >>> model[0].weight.data = torch.tensor([[3.0], [1.0]])
        >>> model[0].bias.data.zero_()
        tensor([0., 0.])
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         step(torch.ones(4, 1), model)
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.0)
        >>> evaluator = TorchEvaluator(train, sgd, lambda batch, model: model(batch).sum())
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> _, masks = ActivationMeanRankPruner(model, config_list, evaluator, 1).compress()
        >>> masks["0"]["bias"]
        tensor([1., 0.])
    """

    def channel_metric(self, activations: Tensor) -> Tensor:  # noqa: D102 - see the base
        return channel_means(activations)
