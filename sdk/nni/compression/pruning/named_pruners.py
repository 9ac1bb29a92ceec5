"""Pruners by the names that NNI 2.x gives as `pruning_algorithm`, with its arguments."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.pruner import Pruner
from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning.activation_pruner import (
    ActivationAPoZRankPruner,
    ActivationMeanRankPruner,
)
from nni.compression.pruning.admm_pruner import ADMMPruner
from nni.compression.pruning.fpgm_pruner import FPGMPruner
from nni.compression.pruning.level_pruner import LevelPruner
from nni.compression.pruning.norm_pruner import L1NormPruner, L2NormPruner
from nni.compression.pruning.slim_pruner import SlimPruner
from nni.compression.pruning.taylor_pruner import TaylorFOWeightPruner

PRUNERS: Final[Mapping[str, Callable[..., Pruner]]] = {
    "level": LevelPruner,
    "l1": L1NormPruner,
    "l2": L2NormPruner,
    "fpgm": FPGMPruner,
    "slim": SlimPruner,
    "apoz": ActivationAPoZRankPruner,
    "mean_activation": ActivationMeanRankPruner,
    "taylorfo": TaylorFOWeightPruner,
    "admm": ADMMPruner,
}
"""Pruners by name."""

_CALLBACKS: Final = ("trainer", "optimizer", "criterion")
_RENAMED: Final = {
    "training_batches": "training_steps",
    "scale": "regular_scale",
    "traced_optimizer": "optimizer",
}


def make_pruner(name: str, params: Mapping[str, Any] | None = None) -> Pruner:
    """Return a pruner without a model by name; raise for an unknown name or argument.

    Args:
        name: one of `PRUNERS`.
        params: arguments of the pruner besides model and configuration, as in NNI 3.0 or 2.x.

    Raises:
        ValueError: the name is unknown, or an argument is out of range.
        TypeError: the pruner has no such argument, or lacks one.

    Examples:
        >>> type(make_pruner("l1")).__name__
        'L1NormPruner'
    """
    if name not in PRUNERS:
        known = ", ".join(PRUNERS)
        raise ValueError(f"pruning_algorithm must be one of {known}, got {name!r}")
    try:
        return PRUNERS[name](None, None, **current_arguments(params or {}))
    except TypeError as error:
        raise TypeError(f"pruning_params of {name}: {error}") from error


def current_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of NNI 2.x as those of 3.0: renamed, callbacks as an evaluator.

    `trainer`, `optimizer` and `criterion` become an evaluator.

    Args:
        params: named arguments; those of NNI 3.0 stay as they are.

    Raises:
        TypeError: a callback is given without the others.

    Examples:
        >>> current_arguments({"evaluator": None, "training_batches": 4})
        {'evaluator': None, 'training_steps': 4}
    """
    found = {_RENAMED.get(key, key): value for key, value in params.items()}
    given = [name for name in _CALLBACKS if name in found]
    if not given:
        return found
    missing = [name for name in _CALLBACKS if name not in found]
    if missing:
        raise TypeError(f"{', '.join(given)} need {', '.join(missing)} too")
    trainer, optimizer, criterion = (found.pop(name) for name in _CALLBACKS)
    return {"evaluator": LegacyEvaluator(trainer, optimizer, criterion), **found}


def with_evaluator(params: Mapping[str, Any] | None, evaluator: object) -> dict[str, Any]:
    """Return arguments of a pruner with an evaluator, unless they have one or callbacks.

    Args:
        params: arguments of the pruner; None for none.
        evaluator: an evaluator; other values are not added.

    Examples:
        >>> with_evaluator({"training_steps": 4}, lambda model: 1.0)
        {'training_steps': 4}
    """
    found = dict(params or {})
    trains = {"evaluator", *_CALLBACKS} & found.keys()
    if isinstance(evaluator, Evaluator) and not trains:
        found["evaluator"] = evaluator
    return found
