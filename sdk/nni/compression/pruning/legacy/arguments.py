"""Arguments of pruners of NNI 1.x and 2.x, translated to those of NNI 3.0."""

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from torch.optim import Optimizer

from nni.compression.base.evaluator import Evaluator
from nni.compression.config.legacy import canonical, is_legacy
from nni.compression.config.selection import ModuleInfo
from nni.compression.config.settings import ConfigListError
from nni.compression.pruning.named_pruners import current_arguments

Entry = Mapping[str, object]


@functools.cache
def warn_once(name: str, newer: str) -> None:
    """Warn that a class has a newer form, the first time that it is used.

    Args:
        name: documented name of the class.
        newer: import path of the newer class.
    """
    warnings.warn(
        f"{name} has the arguments of an older NNI; the newer class is {newer}",
        DeprecationWarning,
        stacklevel=4,
    )


def callbacks(first: object, second: object, criterion: object) -> dict[str, Any]:
    """Return trainer, optimizer and criterion by name; the first two may be in either order.

    Args:
        first: trainer or optimizer.
        second: the other one.
        criterion: `(output, target) -> loss`.

    Examples:
        >>> from torch import nn
        >>> import torch
        >>> optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
        >>> callbacks(optimizer, print, nn.MSELoss())["trainer"]
        <built-in function print>
    """
    if isinstance(first, Optimizer):
        first, second = second, first
    return {"trainer": first, "optimizer": second, "criterion": criterion}


def training_arguments(
    args: Sequence[object],
    kwargs: Mapping[str, object],
    with_evaluator: Sequence[str],
    with_callbacks: Sequence[str],
) -> dict[str, Any]:
    """Return arguments after model and configuration as in NNI 3.0: callbacks as an evaluator.

    Args:
        args: positional arguments after model and configuration.
        kwargs: named arguments.
        with_evaluator: names of the positional arguments if the first one is an evaluator.
        with_callbacks: names of the positional arguments otherwise, `trainer`, `optimizer` and
            `criterion` first.

    Raises:
        TypeError: there are too many arguments, one is given twice, or a callback is missing.

    Examples:
        >>> training_arguments((None, 4), {}, ("evaluator", "training_steps"), ("trainer",))
        Traceback (most recent call last):
        TypeError: at most 1 arguments may follow model and config_list, got 2
    """
    names = with_evaluator if args and isinstance(args[0], Evaluator) else with_callbacks
    if len(args) > len(names):
        raise TypeError(
            f"at most {len(names)} arguments may follow model and config_list, got {len(args)}"
        )
    given: dict[str, Any] = dict(zip(names, args, strict=False))
    twice = sorted(given.keys() & kwargs.keys())
    if twice:
        raise TypeError(f"{twice[0]} is given by position and by name")
    given |= kwargs
    if isinstance(given.get("trainer"), Optimizer):
        given["trainer"], given["optimizer"] = given.get("optimizer"), given["trainer"]
    return current_arguments(given)


def check_ratios(config_list: Sequence[Entry], *, closed: bool = False) -> None:
    """Raise ConfigListError unless all sparsities are in (0, 1), or in [0, 1] if `closed`.

    Args:
        config_list: entries of NNI 2.x or 3.0.
        closed: whether 0 and 1 are allowed as well.

    Raises:
        ConfigListError: a sparsity is out of range.
    """
    for index, entry in enumerate(config_list):
        for key in ("sparsity", "sparse_ratio"):
            value = entry.get(key)
            if not isinstance(value, int | float):
                continue  # another check refuses it
            if not (0 <= value <= 1 if closed else 0 < value < 1):
                rule = "in [0, 1]" if closed else "in (0, 1)"
                raise ConfigListError(
                    f"config_list[{index}].{key}", f"must be a number {rule}, got {value}"
                )


def shared_total(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> list[dict[str, object]]:
    """Return one entry by which all layers reach the first sparsity together; 3.0 lists as is.

    Args:
        config_list: entries of NNI 2.x.
        modules: modules of the model by dotted name.

    Returns:
        The entry in a list; an empty list if nothing is selected.

    Raises:
        ConfigListError: an entry breaks a rule.
    """
    if not is_legacy(config_list):
        return [dict(entry) for entry in config_list]
    found = canonical(config_list, modules)
    if not found:
        return []
    names = [name for entry in found for name in _names(entry)]
    ratios = [entry["total_sparsity"] for entry in found]
    if len(set(ratios)) > 1:
        warnings.warn(
            f"config_list has several sparsities; all layers together reach {ratios[0]}",
            UserWarning,
            stacklevel=4,
        )
    return [{"op_names": names, "total_sparsity": ratios[0]}]


def _names(entry: Mapping[str, object]) -> list[str]:
    names = entry["op_names"]
    assert isinstance(names, list)  # of a canonical entry
    return names
