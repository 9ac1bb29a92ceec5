"""Pruners of NNI 1.x that prune once, by name."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from torch import nn

from nni.compression.pruning.legacy.one_shot_base import ConfigList
from nni.compression.pruning.legacy.one_shot_training_pruners import (
    OneShotActivationAPoZRankFilterPruner,
    OneShotActivationMeanRankFilterPruner,
    OneShotSlimPruner,
    OneShotTaylorFOWeightFilterPruner,
)
from nni.compression.pruning.legacy.one_shot_weight_pruners import (
    OneShotFPGMPruner,
    OneShotL1FilterPruner,
    OneShotL2FilterPruner,
    OneShotLevelPruner,
)
from nni.compression.speedup.graph import Inputs

ONE_SHOT: Final[Mapping[str, Callable[..., Any]]] = {
    "level": OneShotLevelPruner,
    "slim": OneShotSlimPruner,
    "l1": OneShotL1FilterPruner,
    "l2": OneShotL2FilterPruner,
    "fpgm": OneShotFPGMPruner,
    "taylorfo": OneShotTaylorFOWeightFilterPruner,
    "apoz": OneShotActivationAPoZRankFilterPruner,
    "mean_activation": OneShotActivationMeanRankFilterPruner,
}
"""Pruners by the names that NNI 1.x gives as `pruning_algorithm`."""


def one_shot_pruner(
    model: nn.Module,
    config_list: ConfigList,
    pruning_algorithm: str = "level",
    dependency_aware: bool = False,  # noqa: FBT001, FBT002 - the documented signature
    dummy_input: Inputs | None = None,
    **algo_kwargs: Any,  # noqa: ANN401 - arguments of the pruner
) -> Any:  # noqa: ANN401 - one of the pruners
    """Return a pruner of NNI 1.x that prunes once, by name, as `OneshotPruner`; raise if unknown.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios in (0, 1).
        pruning_algorithm: `level`, `slim`, `l1`, `l2`, `fpgm`, `taylorfo`, `apoz` or
            `mean_activation`.
        dependency_aware: whether layers that depend on each other lose the same filters.
        dummy_input: inputs of one run of the model, for `dependency_aware`.
        algo_kwargs: further arguments of the pruner.

    Raises:
        ConfigListError: the configuration breaks a rule.
        ValueError: the name is unknown, or `level` is to be `dependency_aware`.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import OneshotPruner
        >>> config_list = [{"op_types": ["Conv2d"], "sparsity": 0.5}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pruner = OneshotPruner(nn.Sequential(nn.Conv2d(1, 2, 1)), config_list, "l2")
        >>> int(pruner.compress()[0].bias_mask.sum())
        1
    """
    if pruning_algorithm not in ONE_SHOT:
        known = ", ".join(ONE_SHOT)
        raise ValueError(f"pruning_algorithm must be one of {known}, got {pruning_algorithm!r}")
    if pruning_algorithm == "level":
        if dependency_aware:
            raise ValueError("pruning_algorithm 'level' has no channels for dependency_aware")
        return OneShotLevelPruner(model, config_list)
    return ONE_SHOT[pruning_algorithm](
        model,
        config_list,
        dependency_aware=dependency_aware,
        dummy_input=dummy_input,
        **algo_kwargs,
    )
