"""Pruners that raise the ratio of another pruner during one training: AGP and linear."""

from abc import abstractmethod

from torch import nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.arguments import check_count
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.fusion import TrainingMember, train_together
from nni.compression.base.pruner import Masks, Pruner
from nni.compression.base.wrapper_set import WrapperSet
from nni.compression.scheduling.growth import agp_part, linear_part


class ScheduledPruner(TrainingMember):
    """Base of the pruners that update the masks of another pruner while the model trains.

    After every `interval_steps` optimizer steps, `total_times` times in all, the other pruner
    makes new masks with a larger part of its ratios. What is masked stays masked. The training
    goes on afterwards, as long as its limits allow.

    Args:
        pruner: the pruner that ranks; its model and configuration are used.
        interval_steps: optimizer steps between two updates, >= 1.
        total_times: number of updates, >= 1; the last one reaches the ratios of the configuration.
        evaluator: trains the model; None for that of the pruner.

    Attributes:
        pruner: the pruner that ranks, which has the wrappers.
        evaluator: trains the model.

    Raises:
        TypeError: `pruner` is no pruner, or a number is no integer.
        ValueError: a number is out of range, or there is no evaluator.
    """

    def __init__(
        self,
        pruner: Pruner,
        interval_steps: int,
        total_times: int,
        evaluator: Evaluator | None = None,
    ) -> None:
        if not isinstance(pruner, Pruner):
            raise TypeError(f"pruner must be a pruner, such as L1NormPruner(...), got {pruner!r}")
        check_count("interval_steps", interval_steps)
        check_count("total_times", total_times)
        found = evaluator if evaluator is not None else pruner.evaluator
        if found is None:
            raise ValueError("evaluator is missing: pass one here or to the pruner; it trains")
        self.pruner = pruner
        self.interval_steps = interval_steps
        self.total_times = total_times
        self.evaluator: Evaluator = found
        self._steps = 0
        self._updates = 0
        self._handles: list[RemovableHandle] = []

    @abstractmethod
    def part(self, update: int) -> float:
        """Return the part of the final ratios after an update.

        Args:
            update: from 1 to `total_times`.

        Returns:
            In (0, 1]; 1 for the last one.
        """

    def compress(
        self, max_steps: int | None = None, max_epochs: int | None = None
    ) -> tuple[nn.Module, Masks]:
        """Train the model and update its masks on the way; return model and masks.

        Args:
            max_steps: optimizer steps, at least `interval_steps * total_times`; None for no limit.
            max_epochs: epochs; None for no limit.

        Returns:
            The model, wrapped, and the masks.

        Raises:
            ValueError: `max_steps` is too small for all updates.
            RuntimeError: the training ended before the last update.
        """
        needed = self.interval_steps * self.total_times
        if max_steps is not None and max_steps < needed:
            raise ValueError(
                f"max_steps must be >= {needed}, which is interval_steps * total_times, got "
                f"{max_steps}"
            )
        self.pruner.wrap_model()
        train_together(self.members(), self.evaluator, self.bound_model, max_steps, max_epochs)
        return self.bound_model, self.get_masks()

    @property
    def bound_model(self) -> nn.Module:
        """Return the model of the pruner.

        Returns:
            The model.
        """
        return self.pruner.bound_model

    @property
    def shared_wrappers(self) -> WrapperSet | None:
        """Return the wrappers of the pruner.

        Returns:
            The set, which fused compressors share.
        """
        return self.pruner.shared_wrappers

    def members(self) -> list[TrainingMember]:
        """Return the compressors that the pruner was made from, and this schedule in its place.

        Returns:
            Those that the pruner was made from, and the schedule as the last.
        """
        return [*self.pruner.members()[:-1], self]

    def prepare_training(self) -> None:
        """Reset the counts of steps and updates; masks stay."""
        self._steps = self._updates = 0

    def join_training(self, evaluator: Evaluator) -> None:
        """Observe the model, and update the masks after optimizer steps.

        Args:
            evaluator: has the model.
        """
        self._handles = self.pruner.observe()
        self.pruner.patch(evaluator)
        evaluator.patch_optimizer_step([], [self._after_step])

    def leave_training(self) -> None:
        """Remove the hooks, and set masked values to zero."""
        self._forget()
        self.pruner.ratio_factor = 1.0
        self.pruner.leave_training()

    def check_training(self) -> None:
        """Raise RuntimeError if the training was too short for all updates.

        Raises:
            RuntimeError: the training ended before the last update.
        """
        needed = self.interval_steps * self.total_times
        if self._updates < self.total_times:
            raise RuntimeError(
                f"the training made {self._steps} optimizer steps, but {self.total_times} updates "
                f"of the masks need {needed}; train longer or choose a smaller interval_steps"
            )

    def get_masks(self) -> Masks:
        """Return copies of the masks, as `Pruner.get_masks`.

        Returns:
            Masks by module and target name.
        """
        return self.pruner.get_masks()

    def wrap_model(self) -> nn.Module:
        """Put the pruner's wrappers into the model; return the model.

        Returns:
            The model.
        """
        return self.pruner.wrap_model()

    def unwrap_model(self) -> nn.Module:
        """Put the original modules back into the model; return the model.

        Returns:
            The model.
        """
        return self.pruner.unwrap_model()

    def _after_step(self) -> None:
        self._steps += 1
        if self._steps % self.interval_steps or self._updates == self.total_times:
            return
        self._updates += 1
        self.pruner.ratio_factor = self.part(self._updates)
        self.pruner.update_masks(self.pruner.generate_masks())
        self._forget()
        if self._updates < self.total_times:
            self._handles = self.pruner.observe()

    def _forget(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


class AGPPruner(ScheduledPruner):
    """Pruner that raises another pruner's ratios in a training, the largest increments first.

    After update k of n the ratios are 1 - (1 - k/n)^3 of those of the configuration.

    Args:
        pruner: the pruner that ranks; its model and configuration are used.
        interval_steps: optimizer steps between two updates, >= 1.
        total_times: number of updates, >= 1.
        evaluator: trains the model; None for that of the pruner.

    Raises:
        TypeError: `pruner` is no pruner, or a number is no integer.
        ValueError: a number is out of range, or there is no evaluator.

    Source: Zhu and Gupta, To prune, or not to prune, 2017.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.pruning import AGPPruner, LevelPruner
        >>> model = nn.Sequential(nn.Linear(10, 10))
        >>> def train(model, optimizer, step, lr_schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps):
        ...         optimizer.zero_grad()
        ...         step(torch.ones(1, 10), model).backward()
        ...         optimizer.step()
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(train, sgd, lambda batch, model: model(batch).sum())
        >>> inner = LevelPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.8}], evaluator)
        >>> _, masks = AGPPruner(inner, interval_steps=2, total_times=3).compress(max_steps=6)
        >>> int(masks["0"]["weight"].sum())
        20
    """

    def part(self, update: int) -> float:  # noqa: D102 - see the base
        return agp_part(update, self.total_times)


class LinearPruner(ScheduledPruner):
    """Pruner that raises another pruner's ratios during a training, in equal increments.

    Args:
        pruner: the pruner that ranks; its model and configuration are used.
        interval_steps: optimizer steps between two updates, >= 1.
        total_times: number of updates, >= 1.
        evaluator: trains the model; None for that of the pruner.

    Raises:
        TypeError: `pruner` is no pruner, or a number is no integer.
        ValueError: a number is out of range, or there is no evaluator.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.pruning import LevelPruner, LinearPruner
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.8}]
        >>> inner = LevelPruner(nn.Sequential(nn.Linear(10, 10)), config_list)
        >>> LinearPruner(inner, interval_steps=2, total_times=4)
        Traceback (most recent call last):
        ValueError: evaluator is missing: pass one here or to the pruner; it trains
    """

    def part(self, update: int) -> float:  # noqa: D102 - see the base
        return linear_part(update, self.total_times)
