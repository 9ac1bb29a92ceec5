"""Pruner of weights that move towards zero while a model is fine-tuned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor, nn

from nni.compression.base.arguments import check_count, check_evaluator
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.pruner import Masks, Pruner, TargetKey
from nni.compression.config.settings import check_number
from nni.compression.masking.allocation import Scores
from nni.compression.masking.granularity import expanded, grid, to_blocks
from nni.compression.scheduling.growth import agp_part

_LEARNING_RATE: Final = 1e-2
"""Learning rate of the scores, which Adam updates."""


class MovementPruner(Pruner):
    """Pruner of the weights that training moves towards zero, during the training itself.

    Each block of weights has a score, 0 at first. The gradient of the loss for the mask, which is
    gradient x weight, passes straight to the score. After the warm-up the ratio grows
    cubically until the cool-down; the masks follow the scores after every step, so that a masked
    weight may come back. Weights that were masked before the training stay masked.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; blocks are single weights unless `granularity` says more.
            With `sparse_threshold`, what has sigmoid(score) below it is masked, and
            the mean of the sigmoids is added to the loss.
        evaluator: trains the model.
        warmup_step: optimizer steps before anything is masked, >= 0.
        cooldown_begin_step: optimizer steps after which the ratio is reached, > `warmup_step`.
        regular_scale: weight of the sigmoids in the loss, >= 0; for `sparse_threshold` only.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or an argument has another type.
        ValueError: an argument is out of range.

    Source: Sanh et al., Movement Pruning: Adaptive Sparsity by Fine-Tuning, 2020, sections 3-4.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.pruning import MovementPruner
        >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
        >>> model[0].weight.data = torch.tensor([[1.0, 1.0]])
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         optimizer.zero_grad()
        ...         step(torch.tensor([[1.0, -1.0]]), model).backward()
        ...         optimizer.step()
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(train, sgd, lambda batch, model: model(batch).sum())
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> _, masks = MovementPruner(model, config_list, evaluator, 1, 3).compress(max_steps=4)
        >>> masks["0"]["weight"]
        tensor([[0., 1.]])
    """

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        evaluator: Evaluator,
        warmup_step: int,
        cooldown_begin_step: int,
        regular_scale: float = 1.0,
    ) -> None:
        check_evaluator(evaluator)
        check_count("cooldown_begin_step", cooldown_begin_step)
        if warmup_step != 0:
            check_count("warmup_step", warmup_step)
        if warmup_step >= cooldown_begin_step:
            raise ValueError(
                f"warmup_step must be < cooldown_begin_step, got {warmup_step} and "
                f"{cooldown_begin_step}"
            )
        check_number(regular_scale, "regular_scale", ">= 0", lambda one: one >= 0)
        self.warmup_step = warmup_step
        self.cooldown_begin_step = cooldown_begin_step
        self.regular_scale = regular_scale
        self._trained_by = evaluator
        self._limits: tuple[int | None, int | None] = (cooldown_begin_step, None)
        self._steps = 0
        self._scored: dict[TargetKey, nn.Parameter] = {}
        self._masked_before: Masks = {}
        super().__init__(model, config_list, evaluator)

    def compress(
        self, max_steps: int | None = None, max_epochs: int | None = None
    ) -> tuple[nn.Module, Masks]:
        """Train the model and its masks within limits, or up to the cool-down; return both.

        Args:
            max_steps: optimizer steps, at least `cooldown_begin_step`.
            max_epochs: epochs; `cooldown_begin_step` steps if both are None.

        Returns:
            The model, wrapped, and the masks.

        Raises:
            ValueError: `max_steps` is below `cooldown_begin_step`.
            RuntimeError: the training ended before the cool-down.
        """
        if max_steps is not None and max_steps < self.cooldown_begin_step:
            raise ValueError(
                f"max_steps must be >= cooldown_begin_step, {self.cooldown_begin_step}, got "
                f"{max_steps}"
            )
        if max_steps is None and max_epochs is None:
            max_steps = self.cooldown_begin_step
        self._limits = (max_steps, max_epochs)
        return super().compress()

    def collect_data(self) -> None:
        """Train the model and the scores; raise RuntimeError if the training is too short."""
        self._start()
        self._trained_by.bind_model(self.bound_model)
        try:
            if any(self._has_threshold(key) for key in self._scored):
                self._trained_by.patch_loss(self._regularised)
            self._trained_by.patch_optimizer_step([], [self._after_step])
            self._trained_by.train(*self._limits)
        finally:
            self._trained_by.unbind_model()
            self.ratio_factor = 1.0
            for name, target in self._scored:
                self._wrappers[name].learn_mask(target, None)
        if self._steps < self.cooldown_begin_step:
            raise RuntimeError(
                f"the training made {self._steps} optimizer steps, but cooldown_begin_step is "
                f"{self.cooldown_begin_step}; train longer or choose a smaller one"
            )

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:
        """Return the scores; under a threshold, their sigmoids."""
        return {
            key: scores.detach().sigmoid() if self._has_threshold(key) else scores.detach()
            for key, scores in self._scored.items()
        }

    def _start(self) -> None:
        """Set all scores to zero, and let gradients of the masks reach them."""
        self._steps = 0
        self._masked_before = self.get_masks()
        self._scored = {}
        for name, target in self.own_targets():
            parameter = self._wrappers[name].parameter(target)
            sizes = self._block_sizes(name, target)
            zeros = torch.zeros(grid(parameter.shape, sizes), device=parameter.device)
            scores = self._scored[name, target] = nn.Parameter(zeros)
            self._wrappers[name].learn_mask(target, _StraightThrough(scores, sizes))
        self._optimizer = (
            torch.optim.Adam(self._scored.values(), lr=_LEARNING_RATE) if self._scored else None
        )

    def _after_step(self) -> None:
        """Step the scores; after the warm-up update the ratio and the masks."""
        if self._optimizer is not None:
            self._optimizer.step()
            self._optimizer.zero_grad()
        self._steps += 1
        if self._steps > self.warmup_step:
            growth = self.cooldown_begin_step - self.warmup_step
            self.ratio_factor = agp_part(min(self._steps - self.warmup_step, growth), growth)
            self.update_masks(self.generate_masks())

    def _regularised(self, loss: Tensor, _batch: object) -> Tensor:
        """Return the loss, after the warm-up with the mean of thresholded scores added."""
        if self._steps <= self.warmup_step:
            return loss
        values = [
            scores.sigmoid().mean()
            for key, scores in self._scored.items()
            if self._has_threshold(key)
        ]
        return loss + self.regular_scale * self.ratio_factor * torch.stack(values).mean()

    def _has_threshold(self, key: TargetKey) -> bool:
        name, target = key
        return self._wrappers[name].targets[target].sparse_threshold is not None

    def _scores(self, key: TargetKey, metric: Tensor) -> Scores:
        name, target = key
        before = self._masked_before[name][target]
        sizes = self._block_sizes(name, target)
        # Masks of this training bind nothing: a weight comes back when its score rises.
        kept = to_blocks(before, sizes).any(-1)
        return replace(super()._scores(key, metric), kept=kept)


class _StraightThrough:
    """Function of a mask that returns the mask and passes its gradient to scores of blocks."""

    def __init__(self, scores: nn.Parameter, sizes: tuple[int, ...]) -> None:
        self._scores = scores
        self._sizes = sizes

    def __call__(self, mask: Tensor) -> Tensor:
        scores = expanded(self._scores, self._sizes).to(mask.dtype)
        return mask + (scores - scores.detach())
