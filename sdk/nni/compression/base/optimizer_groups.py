"""Parameter groups that join an optimizer which has schedulers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

_SETTINGS: Final = (
    "lr_lambdas",
    "min_lrs",
    "max_lrs",
    "base_momentums",
    "max_momentums",
)
"""Lists of a scheduler with a setting of each group."""


def add_group(
    optimizer: Optimizer, schedulers: Sequence[LRScheduler], group: Mapping[str, object]
) -> None:
    """Add a group to an optimizer and its schedulers; missing values are the last group's.

    `Optimizer.add_param_group` alone leaves the schedulers with a group too few, and their next
    step fails.

    Args:
        optimizer: the optimizer.
        schedulers: its schedulers.
        group: `params` and hyperparameters; `lr` is the rate before any scheduler changes it.

    Examples:
        >>> import torch
        >>> from torch.optim.lr_scheduler import StepLR
        >>> one, other = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
        >>> optimizer = torch.optim.SGD([one], lr=1.0)
        >>> scheduler = StepLR(optimizer, 1, gamma=0.5)
        >>> add_group(optimizer, [scheduler], {"params": [other], "lr": 0.1})
        >>> optimizer.step()
        >>> scheduler.step()
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.5, 0.05]
    """
    last = dict(optimizer.param_groups[-1])
    optimizer.add_param_group(dict(group))
    added = optimizer.param_groups[-1]
    first_rate = added["lr"]
    for key, value in last.items():  # schedulers write settings into the groups
        added.setdefault(key, first_rate if key == "initial_lr" else value)
    if last.get("initial_lr"):
        added["lr"] = first_rate * last["lr"] / last["initial_lr"]
    for scheduler in _all(schedulers):
        _extend(vars(scheduler), first_rate, added["lr"])


def _all(schedulers: Sequence[LRScheduler]) -> Iterator[LRScheduler]:
    """Yield the schedulers, and those that they chain or run in sequence."""
    for scheduler in schedulers:
        yield scheduler
        yield from _all(vars(scheduler).get("_schedulers", ()))


def _extend(scheduler: dict[str, Any], first_rate: float, rate: float) -> None:
    for name, value in (("base_lrs", first_rate), ("_last_lr", rate)):
        if name in scheduler:
            scheduler[name] = [*scheduler[name], value]
    for name in _SETTINGS:
        if scheduler.get(name):
            scheduler[name] = [*scheduler[name], scheduler[name][-1]]
