"""Pruner of channels by the scale of their batch norm, trained to be sparse."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.arguments import check_count
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.pruner import TargetKey
from nni.compression.config.settings import check_number
from nni.compression.masking.metrics import norms
from nni.compression.pruning.channel_pruner import Mode
from nni.compression.pruning.training_pruner import TrainingPruner


class SlimPruner(TrainingPruner):
    """Pruner of the BatchNorm2d channels of smallest scale, after training with a penalty.

    During the training steps the loss has `regular_scale` times the sum of the absolute scales
    added, which drives the scales of unneeded channels to zero. Scale and shift of a channel are
    masked together.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules of type BatchNorm2d and ratios.
        evaluator: trains the model.
        training_steps: number of steps with the penalty, >= 1; None if `training_epochs` says it.
        regular_scale: weight of the penalty, >= 0.
        mode: `global`: the layers of an entry reach its ratio together, each keeps a channel
            unless `max_sparse_ratio` is 1; `normal`: each layer reaches its ratio.
        training_epochs: number of epochs with the penalty, >= 1, instead of `training_steps`.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects other modules.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: an argument is out of range.

    Source: Liu et al., Learning Efficient Convolutional Networks through Network Slimming, 2017.

    Departures: NNI 3.0 ranks factors that it learns beside the scales; these are the scales of the
    paper, as in NNI 2.x.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.pruning import SlimPruner
        >>> model = nn.Sequential(nn.BatchNorm2d(2))
        >>> model[0].weight.data = torch.tensor([0.1, 1.0])
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         optimizer.zero_grad()
        ...         step(torch.ones(2, 2, 1, 1), model).backward()
        ...         optimizer.step()
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(train, sgd, lambda batch, model: model(batch).sum())
        >>> config_list = [{"op_types": ["BatchNorm2d"], "sparse_ratio": 0.5}]
        >>> _, masks = SlimPruner(model, config_list, evaluator, 1, regular_scale=1e-4).compress()
        >>> masks["0"]["weight"]
        tensor([0., 1.])
    """

    op_types = frozenset({"BatchNorm2d"})

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        evaluator: Evaluator,
        training_steps: int | None = None,
        regular_scale: float = 1e-4,
        mode: Mode = "global",
        *,
        training_epochs: int | None = None,
    ) -> None:
        if (training_steps is None) == (training_epochs is None):
            raise ValueError(
                "exactly one of training_steps and training_epochs must be given, got "
                f"{training_steps!r} and {training_epochs!r}"
            )
        if training_epochs is not None:
            check_count("training_epochs", training_epochs)
        if mode not in {"normal", "global"}:
            raise ValueError(f"mode must be 'normal' or 'global', got {mode!r}")
        check_number(regular_scale, "regular_scale", ">= 0", lambda one: one >= 0)
        self.regular_scale = regular_scale
        self.training_epochs = training_epochs
        steps = 1 if training_steps is None else training_steps
        super().__init__(model, config_list, evaluator, steps, mode)

    def observe(self) -> list[RemovableHandle]:  # noqa: D102 - see the base
        return []

    def patch(self, evaluator: Evaluator) -> None:
        """Add the penalty to the loss.

        Args:
            evaluator: has the model.
        """
        evaluator.patch_loss(self._penalised)

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:  # noqa: D102 - see the base
        return {key: norms(blocks, 1) for key, blocks in self.weight_blocks()}

    def _penalised(self, loss: Tensor, _batch: object) -> Tensor:
        scales = [
            self._wrappers[name].parameter(target).abs().sum()
            for name, target in self.own_targets()
        ]
        return loss + self.regular_scale * torch.stack(scales).sum()
