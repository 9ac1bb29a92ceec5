"""ENAS: a policy learns which paths of a supernet earn a high reward.

Source: Pham et al., Efficient Neural Architecture Search via Parameter Sharing, 2018.
Departures: the policy learns by proximal policy optimization, as the multi-trial search by a policy
does, instead of plain REINFORCE.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from pytorch_lightning import LightningModule

from nni.mutable import Sample
from nni.nas.oneshot.pytorch.controller import Controller
from nni.nas.oneshot.pytorch.policy_training import (
    Decisions,
    PolicyFactory,
    PolicyLightningModule,
)
from nni.nas.oneshot.pytorch.profiler import sample_penalty
from nni.nas.oneshot.pytorch.supernet import MutationHook
from nni.nas.oneshot.pytorch.training import TaggedLoader
from nni.nas.strategy.oneshot.base import only_loader
from nni.nas.strategy.oneshot.random_one_shot import RandomOneShot


class ENAS(RandomOneShot):
    """Search by a policy: it samples the paths that are trained, and learns from validation.

    An epoch reads all training batches, which train the weights of sampled architectures, then all
    validation batches, of which each yields the reward of one. The exported architecture is the
    most probable one of the policy.

    Args:
        batches_per_update: validation batches between two updates of the policy.
        log_prob_every_n_step: accepted for other strategies' sake; the reward is logged always.
        replay_buffer_size: trajectories to learn from; None for those since the last update.
        reward_metric_name: metric of `validation_step` that is the reward; None for the only one,
            else `default`, else the only one that is not a loss.
        policy_fn: function of the list of numbers of alternatives that returns a `Controller`;
            None for the default one.
        update_kwargs: `batch_size` (32), `repeat` (5) and `update_times` (5).
        warmup_epochs: first epochs, in which random architectures are trained.
        penalty: penalty on the reward: `SampleProfilerPenalty` or its arguments. Its scale is
            normally negative.
        gradient_clip_val: largest norm of the gradient of the weights; None for no limit.
        filter: must be None.
        mutation_hooks: see `OneShotStrategy`.

    Raises:
        ValueError: `filter` is given, or a number is outside its range.
        TypeError: `penalty` is something else.

    Examples:
        >>> ENAS(batches_per_update=5).status.value
        'empty'
    """

    def __init__(  # noqa: PLR0913 - as specified
        self,
        *,
        batches_per_update: int = 20,
        log_prob_every_n_step: int = 10,
        replay_buffer_size: int | None = None,
        reward_metric_name: str | None = None,
        policy_fn: PolicyFactory | None = None,
        update_kwargs: Mapping[str, int] | None = None,
        warmup_epochs: int = 0,
        penalty: object = None,
        gradient_clip_val: float | None = None,
        filter: object = None,  # noqa: A002 - refused with a remedy
        mutation_hooks: Iterable[MutationHook] | None = None,
    ) -> None:
        if filter is not None:
            raise ValueError(
                f"filter must be None, got {filter!r}; ENAS takes penalty instead, with a negative "
                "scale"
            )
        super().__init__(None, mutation_hooks)
        for name, value, least in (
            ("batches_per_update", batches_per_update, 1),
            ("log_prob_every_n_step", log_prob_every_n_step, 1),
            ("warmup_epochs", warmup_epochs, 0),
        ):
            if value < least:
                raise ValueError(f"{name} must be >= {least}, got {value}")
        found = sample_penalty(penalty)
        if found is not None and found.scale > 0:
            warnings.warn(
                f"scale of the penalty of ENAS is normally negative, got {found.scale}: the "
                "penalty acts on the reward, which is maximized",
                stacklevel=2,
            )
        self._policy_fn: PolicyFactory = Controller if policy_fn is None else policy_fn
        self._decisions: Decisions | None = None
        self._options: dict[str, Any] = {
            "batches_per_update": batches_per_update,
            "replay_buffer_size": replay_buffer_size,
            "reward_metric_name": reward_metric_name,
            "update_kwargs": update_kwargs,
            "warmup_epochs": warmup_epochs,
            "penalty": found,
            "gradient_clip_val": gradient_clip_val,
        }

    def after_mutation(self, model_space: Any) -> None:  # noqa: ANN401 - any mutable module
        """Create the sampler and the policy's decisions from the leaves of the supernet."""
        super().after_mutation(model_space)
        self._decisions = Decisions(model_space)

    def configure_oneshot_module(self, training_module: LightningModule) -> PolicyLightningModule:
        """Return the module that trains weights and policy in turn.

        Raises:
            RuntimeError: no space was converted.
            ValueError: the space has no choice.
        """
        if self._decisions is None:
            raise RuntimeError("ENAS has no supernet; call mutate_model first")
        if not self._decisions.values:
            raise ValueError("the model space of ENAS must have a choice, got none")
        policy = self._policy_fn(self._decisions.sizes)
        return PolicyLightningModule(
            training_module, self.path, self.sampler, self._decisions, policy, **self._options
        )

    def train_dataloader(self, train: Any, val: Any) -> TaggedLoader:  # noqa: ANN401 - any form of loaders
        """Return a loader of (name, batch) pairs: all training batches, then all of validation."""
        name = type(self).__name__
        return TaggedLoader(
            {
                "train": only_loader(train, "train_dataloaders", name),
                "val": only_loader(val, "val_dataloaders", name),
            }
        )

    def val_dataloader(self, train: Any, val: Any) -> None:  # noqa: ANN401 - any form of loaders
        """Return None: the training reads all batches."""
        del train, val

    def export(self) -> Sample:
        """Return the policy's most probable architecture; a drawn one if constraints refuse it."""
        return self.oneshot_module.export()
