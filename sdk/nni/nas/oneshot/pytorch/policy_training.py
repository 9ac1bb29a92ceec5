"""Training of a supernet whose architectures are chosen by a policy."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from pytorch_lightning import LightningModule
from pytorch_lightning.utilities.data import extract_batch_size
from torch import Tensor
from torch.nn.modules.batchnorm import _NormBase
from torchmetrics import Metric

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    LabeledMutable,
    Mutable,
    MutableAnnotation,
    Sample,
)
from nni.nas.oneshot.pytorch.architecture import SampledPath
from nni.nas.oneshot.pytorch.controller import Controller, ControllerEpisode
from nni.nas.oneshot.pytorch.path_sampling import ATTEMPTS, UniformSampler
from nni.nas.oneshot.pytorch.profiler import SampleProfilerPenalty
from nni.nas.oneshot.pytorch.sampling_training import STATE
from nni.nas.oneshot.pytorch.second_order import restored_buffers
from nni.nas.oneshot.pytorch.training import ManualOneShotLightningModule, step_output

PolicyFactory = Callable[[Sequence[int]], Controller]
"""Function of the number of alternatives of each decision."""
UPDATE_TIMES = 5
"""Calls of `Controller.update` in one update."""
OPTIMIZER = "nni_controller_optimizer"
"""Key of the state of the optimizer of the policy in a checkpoint."""
EPISODES = "nni_controller_episodes"
"""Key of the number of collected batches and the buffered episodes in a checkpoint."""


class Decisions:
    """Translator of a policy's actions to samples; each single choice is one decision.

    Args:
        space: mutable space.

    Raises:
        TypeError: a leaf is no choice among values.
        ValueError: a choice takes several values at once.
    """

    def __init__(self, space: Mutable) -> None:
        self.values = {
            leaf.label: values
            for leaf in space.simplify().values()
            if (values := decision_values(leaf)) is not None
        }

    @property
    def sizes(self) -> list[int]:
        """Number of alternatives of each decision."""
        return [len(values) for values in self.values.values()]

    def sample(self, actions: Sequence[int]) -> Sample:
        """Return the sample of one action for each decision.

        Args:
            actions: position of the alternative in each decision.
        """
        pairs = zip(self.values.items(), actions, strict=True)
        return {label: values[action] for (label, values), action in pairs}


def decision_values(leaf: LabeledMutable) -> list[Any] | None:
    """Return the sample values of a single choice; None for a constraint; raise for other leaves.

    Args:
        leaf: dimension of the space.

    Raises:
        TypeError: the leaf is no choice among values.
        ValueError: the leaf takes several values at once.
    """
    match leaf:
        case Categorical():
            return list(leaf.values)
        case CategoricalMultiple():
            if leaf.n_chosen != 1:
                raise ValueError(
                    f"{leaf.label!r} must choose one candidate for a policy, got "
                    f"n_chosen={leaf.n_chosen}; use DARTS or RandomOneShot"
                )
            return [[value] for value in leaf.values]
        case MutableAnnotation():
            return None
    raise TypeError(f"{leaf.label!r} must be a choice among values for a policy, got {leaf!r}")


class PolicyLightningModule(ManualOneShotLightningModule):
    """Training of the weights in the first part of an epoch, of the policy in the second.

    A batch is a pair of the name of its loader, `train` or `val`, and a batch.

    Args:
        training_module: module of the evaluator.
        path: sample that the supernet computes.
        sampler: source of architectures during the warm-up; it checks constraints.
        decisions: translation of actions.
        batches_per_update: validation batches between two updates of the policy.
        gradient_clip_val: largest norm of the gradient of the weights; None for no limit.
        replay_buffer_size: number of trajectories to learn from; None: those since the last update.
        reward_metric_name: logged metric that is the reward; None: the only one, or `default`.
        policy: policy that chooses the actions.
        update_kwargs: arguments of `Controller.update`, and `update_times`.
        warmup_epochs: first epochs, in which the weights of random architectures only are trained.
        penalty: penalty on the reward; None without.
    """

    # Not overridden for Lightning: the training reads all batches, and no validation follows.
    validation_step = LightningModule.validation_step

    def __init__(  # noqa: PLR0913 - the arguments of the strategy
        self,
        training_module: LightningModule,
        path: SampledPath,
        sampler: UniformSampler,
        decisions: Decisions,
        policy: Controller,
        *,
        batches_per_update: int = 20,
        gradient_clip_val: float | None = None,
        replay_buffer_size: int | None = None,
        reward_metric_name: str | None = None,
        update_kwargs: Mapping[str, int] | None = None,
        warmup_epochs: int = 0,
        penalty: SampleProfilerPenalty | None = None,
    ) -> None:
        super().__init__(training_module, gradient_clip_val)
        self.path = path
        self.sampler = sampler
        self.decisions = decisions
        self.policy = policy
        self.batches_per_update = batches_per_update
        self.reward_metric_name = reward_metric_name
        self.update_kwargs = {"update_times": UPDATE_TIMES, **(update_kwargs or {})}
        self.warmup_epochs = warmup_epochs
        self.penalty = penalty
        self._trajectories: deque[ControllerEpisode] = deque(
            maxlen=batches_per_update if replay_buffer_size is None else replay_buffer_size
        )
        self._collected_batches = 0

    def training_step(self, batch: tuple[str, Any], batch_idx: int) -> Tensor | None:
        """Train the weights by a training batch, or collect a reward of a validation batch.

        Args:
            batch: name of the loader, and batch.
            batch_idx: its index.

        Returns:
            Loss of a training batch; None for another.
        """
        kind, data = batch
        warm = self.current_epoch < self.warmup_epochs
        if kind == "train":
            self.path.sample = self.sampler.draw() if warm else self._chosen()[0]
            return self.weight_step(data, batch_idx)
        if not warm:
            self._collect(data, batch_idx)
        return None

    def training_batches(self, batch: tuple[str, Any]) -> tuple[Any, ...]:
        """Return the batch if it is a training batch."""
        kind, data = batch
        return (data,) if kind == "train" else ()

    def each_batch(self, batch: tuple[str, Any], function: Callable[[Any], Any]) -> tuple[str, Any]:
        """Return name and batch, the latter replaced by the result of a function."""
        kind, data = batch
        return kind, function(data)

    def _chosen(self) -> tuple[Sample, tuple[int, ...], tuple[float, ...]]:
        """Draw a sample of the policy within constraints; return it, actions, log probabilities."""
        for _ in range(ATTEMPTS):
            actions, logarithms = self.policy.act()
            sample = self.decisions.sample(actions)
            if self.sampler.admits(sample):
                return sample, actions, logarithms
        raise RuntimeError(
            f"none of {ATTEMPTS} architectures of the policy satisfies the constraints of the space"
        )

    @torch.no_grad()
    def _measured(self, data: Any, batch_idx: int) -> dict[str, Any]:  # noqa: ANN401 - any batch
        """Run the validation step on a batch, leaving buffers unchanged; return what it logs.

        Batch normalization takes the statistics of the batch: the running ones are averages over
        all paths, under which paths that normalize nothing look better than they are. One example
        has no statistics.
        """
        self.training_module.eval()
        if extract_batch_size(data) > 1:
            for module in self.model.modules():
                if isinstance(module, _NormBase):
                    module.train()
        with restored_buffers(self.model), self.collected_logs() as logged:
            step_output(self.training_module.validation_step, data, batch_idx)
        self.training_module.train()
        return logged

    def _collect(self, data: Any, batch_idx: int) -> None:  # noqa: ANN401 - any batch
        """Validate the chosen path on a batch, buffer its reward; update the policy when due."""
        sample, actions, logarithms = self._chosen()
        self.path.sample = sample
        measured = self._measured(data, batch_idx)
        reward = number_of(reward_of(measured, self.reward_metric_name))
        for value in measured.values():
            if isinstance(value, Metric):
                value.reset()  # else the next batch would count this one
        if self.penalty is not None:
            total, details = self.penalty(torch.tensor(reward), sample)
            reward = float(total)
            self.log_dict({f"penalty/{name}": value for name, value in details.items()})
        self.log("reward", reward)
        if math.isfinite(reward):
            self._trajectories.append(ControllerEpisode(actions, logarithms, reward))
        else:
            warnings.warn(
                f"a reward must be a finite number, got {reward}; the policy does not learn it",
                RuntimeWarning,
                stacklevel=2,
            )
        self._collected_batches += 1
        if self._collected_batches % self.batches_per_update == 0:
            self.update_policy()

    def update_policy(self) -> None:
        """Update the policy several times by the buffered trajectories."""
        arguments = dict(self.update_kwargs)
        with torch.enable_grad(), torch.autocast(self.device.type, enabled=False):
            for _ in range(arguments.pop("update_times")):
                self.policy.update(list(self._trajectories), **arguments)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add policy optimizer, buffered rewards and draws to `checkpoint`; call the base hook."""
        checkpoint[OPTIMIZER] = self.policy.optimizer.state_dict()
        episodes = [
            [list(one.actions), list(one.log_probabilities), one.reward]
            for one in self._trajectories
        ]
        checkpoint[EPISODES] = [self._collected_batches, episodes]
        checkpoint[STATE] = list(self.sampler.state)
        super().on_save_checkpoint(checkpoint)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore policy optimizer, buffered rewards and draws, as far as they are saved."""
        if OPTIMIZER in checkpoint:
            self.policy.optimizer.load_state_dict(checkpoint[OPTIMIZER])
        if EPISODES in checkpoint:  # not in those of earlier versions
            self._collected_batches, episodes = checkpoint[EPISODES]
            self._trajectories.clear()
            self._trajectories.extend(
                ControllerEpisode(tuple(actions), tuple(logarithms), reward)
                for actions, logarithms, reward in episodes
            )
            self.sampler.state = tuple(checkpoint[STATE])
        super().on_load_checkpoint(checkpoint)

    def export(self) -> Sample:
        """Return the most probable architecture of the policy; a draw if constraints refuse it."""
        sample = self.decisions.sample(self.policy.best())
        return sample if self.sampler.admits(sample) else self._chosen()[0]


def number_of(value: Any) -> float:  # noqa: ANN401 - number, tensor or metric
    """Return a logged value as a number.

    Args:
        value: number, tensor of one element, or metric of torchmetrics.
    """
    return float(value.compute() if isinstance(value, Metric) else value)


def reward_of(logged: Mapping[str, Any], name: str | None) -> Any:  # noqa: ANN401 - number or tensor
    """Return the named metric, or the only candidate, as the reward; raise KeyError without.

    Args:
        logged: metrics by name.
        name: metric that is the reward; None for the rule below.

    Returns:
        The metric of that name; without one the only metric, else `default`, else the only one
        that is not a loss.

    Raises:
        KeyError: none of these exists.

    Examples:
        >>> reward_of({"val_loss": 0.3, "val_acc": 0.9}, None)
        0.9
    """
    if name is not None and name in logged:
        return logged[name]
    if name is None:
        others = [one for one in logged if "loss" not in one]
        for candidates in (list(logged), [one for one in logged if one == "default"], others):
            if len(candidates) == 1:
                return logged[candidates[0]]
    raise KeyError(
        f"the reward must be one metric that validation_step logs, got {sorted(logged)}; name it "
        "by reward_metric_name"
    )
