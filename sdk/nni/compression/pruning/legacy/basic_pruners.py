"""Pruners with the arguments of NNI 2.x: callbacks of training in place of an evaluator.

Where an evaluator is given, arguments are those of NNI 2.8 and later. `compress` returns the model
and its masks, as in NNI 3.0.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.pruning.activation_pruner import (
    ActivationAPoZRankPruner,
    ActivationMeanRankPruner,
)
from nni.compression.pruning.admm_pruner import ADMMPruner
from nni.compression.pruning.channel_pruner import Mode
from nni.compression.pruning.fpgm_pruner import FPGMPruner
from nni.compression.pruning.legacy.arguments import training_arguments, warn_once
from nni.compression.pruning.norm_pruner import L1NormPruner, L2NormPruner
from nni.compression.pruning.slim_pruner import SlimPruner
from nni.compression.pruning.taylor_pruner import TaylorFOWeightPruner
from nni.compression.speedup.graph import Inputs

ConfigList = Sequence[Mapping[str, object]]

_CALLBACKS: Final = ("trainer", "optimizer", "criterion")
_OBSERVED: Final = ("mode", "dummy_input")


def _warn(name: str) -> None:
    warn_once(name, f"nni.compression.pruning.{name}")


class LegacyL1NormPruner(L1NormPruner):
    """`L1NormPruner` with the arguments of NNI 2.x; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        mode: `normal`, `global` or `dependency_aware`.
        dummy_input: inputs of one run of the model, for `dependency_aware`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        ValueError: `mode` is unknown, or there is no `dummy_input`.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.v2.pytorch.pruning import L1NormPruner
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pruner = L1NormPruner(nn.Sequential(nn.Linear(3, 4)), config_list, "normal")
        >>> _, masks = pruner.compress()
        >>> int(masks["0"]["bias"].sum())
        2
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        mode: Mode = "normal",
        dummy_input: Inputs | None = None,
    ) -> None:
        _warn("L1NormPruner")
        super().__init__(model, config_list, None, mode, dummy_input)


class LegacyL2NormPruner(L2NormPruner):
    """`L2NormPruner` with the arguments of NNI 2.x; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        mode: `normal`, `global` or `dependency_aware`.
        dummy_input: inputs of one run of the model, for `dependency_aware`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        ValueError: `mode` is unknown, or there is no `dummy_input`.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.v2.pytorch.pruning import L2NormPruner
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pruner = L2NormPruner(nn.Sequential(nn.Linear(3, 4)), config_list, "normal")
        >>> _, masks = pruner.compress()
        >>> int(masks["0"]["bias"].sum())
        2
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        mode: Mode = "normal",
        dummy_input: Inputs | None = None,
    ) -> None:
        _warn("L2NormPruner")
        super().__init__(model, config_list, None, mode, dummy_input)


class LegacyFPGMPruner(FPGMPruner):
    """`FPGMPruner` with the arguments of NNI 2.x; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        mode: `normal`, `global` or `dependency_aware`.
        dummy_input: inputs of one run of the model, for `dependency_aware`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        ValueError: `mode` is unknown, or there is no `dummy_input`.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.v2.pytorch.pruning import FPGMPruner
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pruner = FPGMPruner(nn.Sequential(nn.Linear(3, 4)), config_list, "normal")
        >>> _, masks = pruner.compress()
        >>> int(masks["0"]["bias"].sum())
        2
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        mode: Mode = "normal",
        dummy_input: Inputs | None = None,
    ) -> None:
        _warn("FPGMPruner")
        super().__init__(model, config_list, None, mode, dummy_input)


class LegacySlimPruner(SlimPruner):
    """`SlimPruner` with the arguments of NNI 2.x, or an evaluator; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        args: `trainer, optimizer, criterion, training_epochs, scale, mode`, or, with an evaluator,
            `evaluator, training_steps, scale, mode`.
        kwargs: the same by name.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: an argument is missing, unknown or given twice.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.v2.pytorch.pruning import SlimPruner
        >>> SlimPruner(nn.BatchNorm2d(2), [], lambda *_: None, training_epochs=1)
        Traceback (most recent call last):
        TypeError: trainer need optimizer, criterion too
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        *args: Any,  # noqa: ANN401 - two documented lists of arguments
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        newer = ("evaluator", "training_steps", "scale", "mode")
        older = (*_CALLBACKS, "training_epochs", "scale", "mode")
        given = training_arguments(args, kwargs, newer, older)
        _warn("SlimPruner")
        super().__init__(model, config_list, **given)


class LegacyTaylorFOWeightPruner(TaylorFOWeightPruner):
    """`TaylorFOWeightPruner` with the arguments of NNI 2.x, or an evaluator; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        args: `trainer, optimizer, criterion, training_batches, mode, dummy_input`, or, with an
            evaluator, `evaluator, training_steps, mode, dummy_input`.
        kwargs: the same by name.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: an argument is missing, unknown or given twice.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.v2.pytorch.pruning import TaylorFOWeightPruner
        >>> TaylorFOWeightPruner(nn.Linear(2, 2), [], lambda *_: None, training_batches=1)
        Traceback (most recent call last):
        TypeError: trainer need optimizer, criterion too
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        *args: Any,  # noqa: ANN401 - two documented lists of arguments
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        newer = ("evaluator", "training_steps", *_OBSERVED)
        older = (*_CALLBACKS, "training_batches", *_OBSERVED)
        given = training_arguments(args, kwargs, newer, older)
        _warn("TaylorFOWeightPruner")
        super().__init__(model, config_list, **given)


class LegacyActivationAPoZRankPruner(ActivationAPoZRankPruner):
    """`ActivationAPoZRankPruner` with arguments of NNI 2.x, or an evaluator; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        args: `trainer, optimizer, criterion, training_batches, activation, mode, dummy_input`, or,
            with an evaluator, `evaluator, training_steps, activation, mode, dummy_input`.
        kwargs: the same by name.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: an argument is missing, unknown or given twice.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.v2.pytorch.pruning import ActivationAPoZRankPruner
        >>> ActivationAPoZRankPruner(nn.Linear(2, 2), [], lambda *_: None, training_batches=1)
        Traceback (most recent call last):
        TypeError: trainer need optimizer, criterion too
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        *args: Any,  # noqa: ANN401 - two documented lists of arguments
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        newer = ("evaluator", "training_steps", "activation", *_OBSERVED)
        older = (*_CALLBACKS, "training_batches", "activation", *_OBSERVED)
        given = training_arguments(args, kwargs, newer, older)
        _warn("ActivationAPoZRankPruner")
        super().__init__(model, config_list, **given)


class LegacyActivationMeanRankPruner(ActivationMeanRankPruner):
    """`ActivationMeanRankPruner` with arguments of NNI 2.x, or an evaluator; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        args: `trainer, optimizer, criterion, training_batches, activation, mode, dummy_input`, or,
            with an evaluator, `evaluator, training_steps, activation, mode, dummy_input`.
        kwargs: the same by name.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: an argument is missing, unknown or given twice.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.v2.pytorch.pruning import ActivationMeanRankPruner
        >>> ActivationMeanRankPruner(nn.Linear(2, 2), [], lambda *_: None, training_batches=1)
        Traceback (most recent call last):
        TypeError: trainer need optimizer, criterion too
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        *args: Any,  # noqa: ANN401 - two documented lists of arguments
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        newer = ("evaluator", "training_steps", "activation", *_OBSERVED)
        older = (*_CALLBACKS, "training_batches", "activation", *_OBSERVED)
        given = training_arguments(args, kwargs, newer, older)
        _warn("ActivationMeanRankPruner")
        super().__init__(model, config_list, **given)


class LegacyADMMPruner(ADMMPruner):
    """`ADMMPruner` with the arguments of NNI 2.x, such as `rho` in entries; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0, which may have one `rho`; not changed.
        args: `trainer, optimizer, criterion, iterations, training_epochs`, or, with an evaluator,
            `evaluator, iterations, training_epochs`.
        kwargs: the same by name.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: an argument is missing, unknown or given twice.

    Examples:
        >>> from torch import nn
        >>> from nni.algorithms.compression.v2.pytorch.pruning import ADMMPruner
        >>> ADMMPruner(nn.Linear(2, 2), [], lambda *_: None, iterations=1, training_epochs=1)
        Traceback (most recent call last):
        TypeError: trainer need optimizer, criterion too
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        *args: Any,  # noqa: ANN401 - two documented lists of arguments
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        newer = ("evaluator", "iterations", "training_epochs")
        older = (*_CALLBACKS, "iterations", "training_epochs")
        given = training_arguments(args, kwargs, newer, older)
        rho = _common_rho(config_list)
        _warn("ADMMPruner")
        super().__init__(model, _without_rho(config_list), **{**rho, **given})


def _common_rho(config_list: ConfigList) -> dict[str, Any]:
    """Return the entries' `rho` as an argument, empty without one; raise if there are several."""
    found = list(dict.fromkeys(entry["rho"] for entry in config_list if "rho" in entry))
    if len(found) > 1:
        raise ConfigListError("config_list", f"needs one rho for all entries, got {found}")
    return {"rho": found[0]} if found else {}


def _without_rho(config_list: ConfigList) -> list[dict[str, object]]:
    return [{key: one for key, one in entry.items() if key != "rho"} for entry in config_list]
