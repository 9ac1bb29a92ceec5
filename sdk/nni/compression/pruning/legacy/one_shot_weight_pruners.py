"""Pruners of NNI 1.x that rank by weights alone."""

from torch import nn

from nni.compression.pruning.fpgm_pruner import FPGMPruner
from nni.compression.pruning.legacy.one_shot_base import (
    CONVOLUTIONS,
    ConfigList,
    OneShotBase,
    mode_of,
)
from nni.compression.pruning.level_pruner import LevelPruner
from nni.compression.pruning.norm_pruner import L1NormPruner, L2NormPruner
from nni.compression.speedup.graph import Inputs


class OneShotLevelPruner(OneShotBase, LevelPruner):
    """`LevelPruner` of NNI 1.x: ratios in (0, 1); `compress` returns the model only.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios in (0, 1).

    Raises:
        ConfigListError: the configuration breaks a rule.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import LevelPruner
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     model = LevelPruner(nn.Sequential(nn.Linear(3, 4)), config_list).compress()
        >>> int(model[0].weight_mask.sum())
        6
    """

    documented = newer = "LevelPruner"

    def __init__(self, model: nn.Module, config_list: ConfigList) -> None:
        super().__init__(model, config_list)


class OneShotL1FilterPruner(OneShotBase, L1NormPruner):
    """`L1NormPruner` of NNI 1.x, for Conv2d only; `compress` returns the model only.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules of type Conv2d and ratios in (0, 1).
        dependency_aware: whether layers that depend on each other lose the same filters.
        dummy_input: inputs of one run of the model, for `dependency_aware`.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects other modules.
        ValueError: there is no `dummy_input`.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import L1FilterPruner
        >>> config_list = [{"op_types": ["Conv2d"], "sparsity": 0.5}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     model = L1FilterPruner(nn.Sequential(nn.Conv2d(1, 4, 1)), config_list).compress()
        >>> int(model[0].bias_mask.sum())
        2
    """

    op_types = CONVOLUTIONS
    documented, newer = "L1FilterPruner", "L1NormPruner"

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002 - the documented signature
        dummy_input: Inputs | None = None,
    ) -> None:
        super().__init__(model, config_list, None, mode_of(dependency_aware), dummy_input)


class OneShotL2FilterPruner(OneShotBase, L2NormPruner):
    """`L2NormPruner` of NNI 1.x, for Conv2d only; `compress` returns the model only.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules of type Conv2d and ratios in (0, 1).
        dependency_aware: whether layers that depend on each other lose the same filters.
        dummy_input: inputs of one run of the model, for `dependency_aware`.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects other modules.
        ValueError: there is no `dummy_input`.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import L2FilterPruner
        >>> config_list = [{"op_types": ["Conv2d"], "sparsity": 0.5}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     model = L2FilterPruner(nn.Sequential(nn.Conv2d(1, 4, 1)), config_list).compress()
        >>> int(model[0].bias_mask.sum())
        2
    """

    op_types = CONVOLUTIONS
    documented, newer = "L2FilterPruner", "L2NormPruner"

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002 - the documented signature
        dummy_input: Inputs | None = None,
    ) -> None:
        super().__init__(model, config_list, None, mode_of(dependency_aware), dummy_input)


class OneShotFPGMPruner(OneShotBase, FPGMPruner):
    """`FPGMPruner` of NNI 1.x, for Conv2d only; `compress` returns the model only.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules of type Conv2d and ratios in (0, 1).
        dependency_aware: whether layers that depend on each other lose the same filters.
        dummy_input: inputs of one run of the model, for `dependency_aware`.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects other modules.
        ValueError: there is no `dummy_input`.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import FPGMPruner
        >>> config_list = [{"op_types": ["Conv2d"], "sparsity": 0.5}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     model = FPGMPruner(nn.Sequential(nn.Conv2d(1, 4, 1)), config_list).compress()
        >>> int(model[0].bias_mask.sum())
        2
    """

    op_types = CONVOLUTIONS
    documented = newer = "FPGMPruner"

    def __init__(
        self,
        model: nn.Module,
        config_list: ConfigList,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002 - the documented signature
        dummy_input: Inputs | None = None,
    ) -> None:
        super().__init__(model, config_list, None, mode_of(dependency_aware), dummy_input)
