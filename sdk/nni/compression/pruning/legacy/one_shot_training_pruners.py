"""Pruners of NNI 1.x that learn from training steps, with the callbacks of NNI 1.x."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.optim import Optimizer

from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning.activation_pruner import (
    Activation,
    ActivationAPoZRankPruner,
    ActivationMeanRankPruner,
)
from nni.compression.pruning.channel_pruner import Mode
from nni.compression.pruning.legacy.arguments import callbacks
from nni.compression.pruning.legacy.one_shot_base import (
    CONVOLUTIONS,
    ConfigList,
    OneShotBase,
    SharedTotalBase,
    mode_of,
)
from nni.compression.pruning.slim_pruner import SlimPruner
from nni.compression.pruning.taylor_pruner import TaylorFOWeightPruner
from nni.compression.speedup.graph import Inputs

Trainer = Callable[..., object]
Criterion = Callable[..., Tensor]


class OneShotSlimPruner(SharedTotalBase, SlimPruner):
    """`SlimPruner` of NNI 1.x: all layers together reach the sparsity of the first entry.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules of type BatchNorm2d and one ratio in (0, 1).
        optimizer: optimizer of the model; it may change places with `trainer`.
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        criterion: `(output, target) -> loss`.
        sparsifying_training_epochs: epochs with the penalty, >= 1.
        scale: weight of the penalty, >= 0.
        dependency_aware: without effect, as in NNI 1.x.
        dummy_input: without effect, as in NNI 1.x.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects other modules.
        TypeError: a callback is wrong.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import SlimPruner
        >>> SlimPruner(nn.BatchNorm2d(2), [], None, print, nn.MSELoss())
        Traceback (most recent call last):
        TypeError: trainer must be a function, got None
    """

    documented = newer = "SlimPruner"

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        model: nn.Module,
        config_list: ConfigList,
        optimizer: Optimizer | Trainer,
        trainer: Trainer | Optimizer,
        criterion: Criterion,
        sparsifying_training_epochs: int = 10,
        scale: float = 0.0001,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002
        dummy_input: Inputs | None = None,
    ) -> None:
        del dependency_aware, dummy_input
        evaluator = _evaluator(optimizer, trainer, criterion)
        epochs = sparsifying_training_epochs
        super().__init__(model, config_list, evaluator, regular_scale=scale, training_epochs=epochs)


class OneShotTaylorFOWeightFilterPruner(SharedTotalBase, TaylorFOWeightPruner):
    """`TaylorFOWeightPruner` with arguments of NNI 1.x; Conv2d only, returns the model only.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules of type Conv2d and ratios in (0, 1).
        optimizer: optimizer of the model; it may change places with `trainer`.
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        criterion: `(output, target) -> loss`.
        sparsifying_training_batches: steps whose gradients are used, >= 1.
        dependency_aware: whether layers that depend on each other lose the same filters.
        dummy_input: inputs of one run of the model, for `dependency_aware`.
        global_sort: whether all layers together reach the sparsity of the first entry.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects other modules.
        TypeError: a callback is wrong.
        ValueError: there is no `dummy_input`, or both flags are set.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import TaylorFOWeightFilterPruner
        >>> TaylorFOWeightFilterPruner(nn.Conv2d(1, 1, 1), [], None, print, nn.MSELoss())
        Traceback (most recent call last):
        TypeError: trainer must be a function, got None
    """

    op_types = CONVOLUTIONS
    documented, newer = "TaylorFOWeightFilterPruner", "TaylorFOWeightPruner"

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        model: nn.Module,
        config_list: ConfigList,
        optimizer: Optimizer | Trainer,
        trainer: Trainer | Optimizer,
        criterion: Criterion,
        sparsifying_training_batches: int = 1,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002
        dummy_input: Inputs | None = None,
        global_sort: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        if dependency_aware and global_sort:
            raise ValueError("dependency_aware and global_sort exclude each other; set one of them")
        evaluator = _evaluator(optimizer, trainer, criterion)
        mode: Mode = "global" if global_sort else mode_of(dependency_aware)
        steps = sparsifying_training_batches
        super().__init__(model, config_list, evaluator, steps, mode, dummy_input)


class OneShotActivationAPoZRankFilterPruner(OneShotBase, ActivationAPoZRankPruner):
    """`ActivationAPoZRankPruner` with arguments of NNI 1.x, for Conv2d; returns the model.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules of type Conv2d and ratios in (0, 1).
        optimizer: optimizer of the model; it may change places with `trainer`.
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        criterion: `(output, target) -> loss`.
        activation: `relu` or `relu6`.
        sparsifying_training_batches: passes whose outputs are used, >= 1.
        dependency_aware: whether layers that depend on each other lose the same filters.
        dummy_input: inputs of one run of the model, for `dependency_aware`.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects other modules.
        TypeError: a callback is wrong.
        ValueError: an argument is out of range, or there is no `dummy_input`.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import ActivationAPoZRankFilterPruner
        >>> ActivationAPoZRankFilterPruner(nn.Conv2d(1, 1, 1), [], None, print, nn.MSELoss())
        Traceback (most recent call last):
        TypeError: trainer must be a function, got None
    """

    op_types = CONVOLUTIONS
    documented, newer = "ActivationAPoZRankFilterPruner", "ActivationAPoZRankPruner"

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        model: nn.Module,
        config_list: ConfigList,
        optimizer: Optimizer | Trainer,
        trainer: Trainer | Optimizer,
        criterion: Criterion,
        activation: Activation = "relu",
        sparsifying_training_batches: int = 1,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002
        dummy_input: Inputs | None = None,
    ) -> None:
        evaluator = _evaluator(optimizer, trainer, criterion)
        mode, steps = mode_of(dependency_aware), sparsifying_training_batches
        super().__init__(model, config_list, evaluator, steps, activation, mode, dummy_input)


class OneShotActivationMeanRankFilterPruner(OneShotBase, ActivationMeanRankPruner):
    """`ActivationMeanRankPruner` with arguments of NNI 1.x, for Conv2d; returns the model.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules of type Conv2d and ratios in (0, 1).
        optimizer: optimizer of the model; it may change places with `trainer`.
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        criterion: `(output, target) -> loss`.
        activation: `relu` or `relu6`.
        sparsifying_training_batches: passes whose outputs are used, >= 1.
        dependency_aware: whether layers that depend on each other lose the same filters.
        dummy_input: inputs of one run of the model, for `dependency_aware`.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects other modules.
        TypeError: a callback is wrong.
        ValueError: an argument is out of range, or there is no `dummy_input`.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import ActivationMeanRankFilterPruner
        >>> ActivationMeanRankFilterPruner(nn.Conv2d(1, 1, 1), [], None, print, nn.MSELoss())
        Traceback (most recent call last):
        TypeError: trainer must be a function, got None
    """

    op_types = CONVOLUTIONS
    documented, newer = "ActivationMeanRankFilterPruner", "ActivationMeanRankPruner"

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        model: nn.Module,
        config_list: ConfigList,
        optimizer: Optimizer | Trainer,
        trainer: Trainer | Optimizer,
        criterion: Criterion,
        activation: Activation = "relu",
        sparsifying_training_batches: int = 1,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002
        dummy_input: Inputs | None = None,
    ) -> None:
        evaluator = _evaluator(optimizer, trainer, criterion)
        mode, steps = mode_of(dependency_aware), sparsifying_training_batches
        super().__init__(model, config_list, evaluator, steps, activation, mode, dummy_input)


def _evaluator(first: object, second: object, criterion: Criterion) -> LegacyEvaluator:
    given = callbacks(first, second, criterion)
    return LegacyEvaluator(given["trainer"], given["optimizer"], given["criterion"])
