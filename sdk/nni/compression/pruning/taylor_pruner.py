"""Pruner of channels by the first-order change of the loss."""

from functools import partial

from torch import Tensor
from torch.utils.hooks import RemovableHandle

from nni.compression.base.pruner import TargetKey
from nni.compression.masking.granularity import to_blocks
from nni.compression.masking.metrics import first_order_contributions
from nni.compression.pruning.training_pruner import TrainingPruner


class TaylorFOWeightPruner(TrainingPruner):
    """Pruner of the output channels whose removal changes the loss least, to first order.

    The contribution of a channel is the sum of (gradient x weight)^2 over its weights, for the
    weights before the step, summed over the steps.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; `granularity` replaces output channels by other blocks.
        evaluator: trains the model.
        training_steps: number of steps whose gradients are used, >= 1.
        mode: `normal`: each weight reaches its ratio; `global`: the weights of an entry reach it
            together; `dependency_aware`: dependent layers lose the same channels first, see
            `ChannelPruner`.
        dummy_input: inputs of one run of the model, for `dependency_aware` only; None for that of
            the evaluator.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `training_steps` or `mode` is out of range.

    Source: Molchanov et al., Importance Estimation for Neural Network Pruning, 2019.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.pruning import TaylorFOWeightPruner
        >>> model = nn.Sequential(nn.Linear(1, 2, bias=False))
        >>> model[0].weight.data = torch.tensor([[1.0], [2.0]])
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         optimizer.zero_grad()
        ...         step(torch.ones(1, 1), model).backward()
        ...         optimizer.step()
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.0)
        >>> evaluator = TorchEvaluator(train, sgd, lambda batch, model: model(batch).sum())
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> _, masks = TaylorFOWeightPruner(model, config_list, evaluator, 1).compress()
        >>> masks["0"]["weight"].flatten()
        tensor([0., 1.])
    """

    def observe(self) -> list[RemovableHandle]:  # noqa: D102 - see the base
        self._contributions: dict[TargetKey, Tensor] = {}
        handles: list[RemovableHandle] = []
        for name, target in self.own_targets():
            parameter: Tensor = self._wrappers[name].parameter(target)
            handles.append(Tensor.register_hook(parameter, partial(self._add, name, target)))  # type: ignore[no-untyped-call]  # torch has no types here
        return handles

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:  # noqa: D102 - see the base
        missing = [key for key in self.own_targets() if key not in self._contributions]
        if missing:
            name, target = missing[0]
            raise RuntimeError(
                f"{name}.{target} got no gradient in {self.training_steps} training steps; the "
                "training must use the layer and compute its loss by training_step"
            )
        return {
            (name, target): to_blocks(values, self._block_sizes(name, target)).sum(-1)
            for (name, target), values in self._contributions.items()
        }

    def _add(self, name: str, target: str, gradient: Tensor) -> None:
        weight = self._wrappers[name].parameter(target).detach()
        added = first_order_contributions(weight, gradient.detach())
        earlier = self._contributions.get((name, target))
        self._contributions[name, target] = added if earlier is None else earlier + added


TaylorPruner = TaylorFOWeightPruner
"""The name in NNI 3.0."""
