"""Pruners of NNI 1.x that train by epochs and update masks between them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from nni.compression.base.arguments import check_count
from nni.compression.base.pruner import Masks, Pruner
from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning.admm_pruner import ADMMPruner
from nni.compression.pruning.epoch_training import EpochTraining
from nni.compression.pruning.legacy.arguments import callbacks, check_ratios, warn_once
from nni.compression.pruning.legacy.one_shot_base import ConfigList, OneShotBase
from nni.compression.pruning.named_pruners import make_pruner
from nni.compression.scheduling.growth import agp_part_of_epoch
from nni.compression.speedup.graph import Inputs

Trainer = Callable[..., object]
Criterion = Callable[..., Tensor]

_BATCHES = 1
"""Batches that algorithms observe for each update of the masks."""


class EpochPruner:
    """Pruner that trains for some epochs, then updates all masks, in several iterations.

    Attributes and methods that it lacks are those of `pruner`.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios in [0, 1]; a ratio of 1 leaves one block.
        optimizer: optimizer of the model, for `trainer`; it may change places with `trainer`.
        pruning_algorithm: `level`, `slim`, `l1`, `l2`, `fpgm`, `taylorfo`, `apoz` or
            `mean_activation`.
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        criterion: `(output, target) -> loss`.
        num_iterations: number of iterations, >= 1.
        epochs_per_iteration: epochs before each update, >= 1; a list gives one number for each.
        dependency_aware: whether layers that depend on each other lose the same filters.
        dummy_input: inputs of one run of the model, for `dependency_aware`.
        algo_kwargs: further arguments of the algorithm.

    Attributes:
        pruner: ranks by the algorithm; it has the model.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: a callback is missing.
        ValueError: an argument is out of range.

    Examples:
        >>> import warnings
        >>> import torch
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import IterativePruner
        >>> model = nn.Sequential(nn.Linear(4, 4))
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> def trainer(model, optimizer, criterion, epoch):
        ...     optimizer.zero_grad()
        ...     criterion(model(torch.ones(1, 4)), torch.ones(1, 4)).backward()
        ...     optimizer.step()
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.75}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pruner = IterativePruner(
        ...         model, config_list, sgd, "level", trainer, nn.MSELoss(), 2, 1
        ...     )
        >>> int(pruner.compress()[0].weight_mask.sum())
        4
    """

    documented = "IterativePruner"

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        model: nn.Module,
        config_list: ConfigList,
        optimizer: Optimizer | Trainer | None = None,
        pruning_algorithm: str = "slim",
        trainer: Trainer | Optimizer | None = None,
        criterion: Criterion | None = None,
        num_iterations: int = 20,
        epochs_per_iteration: int | Sequence[int] = 5,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002
        dummy_input: Inputs | None = None,
        **algo_kwargs: Any,  # noqa: ANN401 - arguments of the algorithm
    ) -> None:
        check_count("num_iterations", num_iterations)
        given = callbacks(optimizer, trainer, criterion)
        if not callable(given["trainer"]) or not isinstance(given["optimizer"], Optimizer):
            raise TypeError(
                f"trainer and an optimizer of torch must be given, got {given['trainer']!r} and "
                f"{given['optimizer']!r}"
            )
        warn_once(self.documented, "nni.compression.pruning.AGPPruner")
        self.epochs = _epochs(num_iterations, epochs_per_iteration)
        self._training = EpochTraining(None, given["trainer"], given["optimizer"], criterion)
        self.pruner = _pruner(
            pruning_algorithm, given, algo_kwargs, dummy_input if dependency_aware else None
        )
        check_ratios(config_list, closed=True)
        self.pruner.reset(model, [_below_one(entry) for entry in config_list])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - attributes of any type
        if name == "pruner":
            raise AttributeError(name)  # while the constructor runs
        return getattr(self.pruner, name)

    def compress(self) -> nn.Module:
        """Train and update the masks in turn; return the wrapped model.

        Returns:
            The model, wrapped.
        """
        self.pruner.wrap_model()
        number = 0
        for epochs in self.epochs:
            for _ in range(epochs):
                self._training.epoch(self.pruner.bound_model, number)
                number += 1
            self._update(1.0)
        return self.pruner.bound_model

    def _update(self, part: float) -> Masks:
        """Collect data, set masks with a part of the ratios; return them."""
        self.pruner.ratio_factor = part
        try:
            self.pruner.collect_data()
            masks = self.pruner.generate_masks()
        finally:
            self.pruner.ratio_factor = 1.0
        self.pruner.update_masks(masks)
        return masks


class EpochAGPPruner(EpochPruner):
    """Pruner that raises the ratios while the model trains, the largest increments first.

    After an epoch whose number is a multiple of `epochs_per_iteration` the masks are updated; the
    last update reaches the ratios of the configuration.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios in [0, 1]; a ratio of 1 leaves one block.
        optimizer: optimizer of the model, for `trainer`; it may change places with `trainer`.
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        criterion: `(output, target) -> loss`.
        num_iterations: number of updates, >= 1.
        epochs_per_iteration: epochs between two updates, >= 1.
        pruning_algorithm: `level`, `slim`, `l1`, `l2`, `fpgm`, `taylorfo`, `apoz` or
            `mean_activation`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: a callback is missing.
        ValueError: an argument is out of range.

    Source: Zhu and Gupta, To prune, or not to prune, 2017.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import AGPPruner
        >>> AGPPruner(nn.Linear(2, 2), [], None, None, nn.MSELoss())
        Traceback (most recent call last):
        TypeError: trainer and an optimizer of torch must be given, got None and None
    """

    documented = "AGPPruner"

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        optimizer: Optimizer | Trainer | None,
        trainer: Trainer | Optimizer | None,
        criterion: Criterion,
        num_iterations: int = 10,
        epochs_per_iteration: int = 1,
        pruning_algorithm: str = "level",
    ) -> None:
        super().__init__(
            model,
            config_list,
            optimizer,
            pruning_algorithm,
            trainer,
            criterion,
            num_iterations,
            epochs_per_iteration,
        )

    def compress(self) -> nn.Module:
        """Train for all epochs and update the masks on the way; return the wrapped model.

        Returns:
            The model, wrapped.
        """
        self.pruner.wrap_model()
        interval, total = self.epochs[0], sum(self.epochs)
        for epoch in range(total):
            self._training.epoch(self.pruner.bound_model, epoch)
            if epoch % interval == 0:
                self._update(agp_part_of_epoch(epoch, total, interval))
        return self.pruner.bound_model


class EpochADMMPruner(OneShotBase, ADMMPruner):
    """`ADMMPruner` of NNI 1.x: trains with Adam at a learning rate of 0.001.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios in (0, 1).
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        criterion: `(output, target) -> loss`; None for the cross entropy.
        num_iterations: number of iterations, >= 1.
        epochs_per_iteration: epochs of each iteration, >= 1.
        row: weight of the distance to sparse weights, > 0.
        base_algo: `level`, `l1`, `l2` or `fpgm`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `trainer` cannot be called.
        ValueError: an argument is out of range.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import ADMMPruner
        >>> ADMMPruner(nn.Linear(2, 2), [], None)
        Traceback (most recent call last):
        TypeError: trainer must be a function, got None
    """

    documented = newer = "ADMMPruner"

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        trainer: Trainer,
        criterion: Criterion | None = None,
        num_iterations: int = 30,
        epochs_per_iteration: int = 5,
        row: float = 1e-4,
        base_algo: str = "l1",
    ) -> None:
        loss = nn.CrossEntropyLoss() if criterion is None else criterion
        optimizer = Adam(model.parameters(), lr=1e-3, weight_decay=5e-5)
        evaluator = LegacyEvaluator(trainer, optimizer, loss)
        steps = (num_iterations, epochs_per_iteration)
        super().__init__(model, config_list, evaluator, *steps, rho=row, base_algo=base_algo)


def _epochs(iterations: int, epochs: int | Sequence[int]) -> list[int]:
    """Return the number of epochs of each iteration; raise if a list has another length."""
    if isinstance(epochs, int):
        check_count("epochs_per_iteration", epochs)
        return [epochs] * iterations
    if len(epochs) != iterations:
        raise ValueError(
            f"epochs_per_iteration must have one number for each of {iterations} iterations, got "
            f"{list(epochs)}"
        )
    for one in epochs:
        check_count("epochs_per_iteration", one)
    return list(epochs)


def _pruner(
    name: str, given: Mapping[str, Any], params: Mapping[str, Any], dummy_input: Inputs | None
) -> Pruner:
    """Return a pruner without a model; those that observe a training get the callbacks."""
    own: dict[str, Any] = dict(params)
    if name == "slim":
        own = {"training_epochs": own.pop("sparsifying_training_epochs", 1), **own}
    elif name in {"taylorfo", "apoz", "mean_activation"}:
        own = {"training_batches": own.pop("sparsifying_training_batches", _BATCHES), **own}
    if name in {"slim", "taylorfo", "apoz", "mean_activation"}:
        own |= given
    if dummy_input is not None:
        own |= {"mode": "dependency_aware", "dummy_input": dummy_input}
    return make_pruner(name, own)


def _below_one(entry: Mapping[str, object]) -> dict[str, object]:
    """Return an entry whose sparsity is below 1, as NNI 2.x demands."""
    found = dict(entry)
    if found.get("sparsity") == 1:
        found["sparsity"] = math.nextafter(1.0, 0.0)
    return found
