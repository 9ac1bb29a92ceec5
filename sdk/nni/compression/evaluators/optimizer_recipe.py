"""Recipes that build an optimizer or scheduler again, for another model with the same names."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from nni.common.serializer import is_traceable

_PARTS: Final = "_schedulers"
"""Attribute of torch with the schedulers that `SequentialLR` and `ChainedScheduler` step."""


@dataclass(frozen=True, slots=True)
class OptimizerRecipe:
    """Recipe to rebuild an optimizer: class, arguments, groups of parameter names and values."""

    make: type[torch.optim.Optimizer]
    """Class of the optimizer."""
    groups: tuple[tuple[tuple[str, ...], Mapping[str, Any]], ...]
    """Names of the parameters and hyperparameters of each group."""
    arguments: Mapping[str, Any]
    """Named arguments of a traced constructor; empty if it was not traced."""

    @classmethod
    def of(
        cls, optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]
    ) -> "OptimizerRecipe":
        """Return an optimizer's recipe, with first learning rates; raise for unknown parameters.

        Args:
            optimizer: traced or not.
            parameters: parameters of its model, by name.

        Raises:
            ValueError: it optimises a parameter that the model lacks.
        """
        names = {id(parameter): name for name, parameter in parameters.items()}
        groups = []
        for group in optimizer.param_groups:
            missing = [one for one in group["params"] if id(one) not in names]
            if missing:
                raise ValueError(
                    f"the optimizer has {len(missing)} parameters that the model lacks; build it "
                    "from the parameters of the model that is compressed"
                )
            values = {key: value for key, value in group.items() if key != "params"}
            if "initial_lr" in values:
                values["lr"] = values.pop("initial_lr")  # a new scheduler starts from the first
            groups.append((tuple(names[id(one)] for one in group["params"]), values))
        traced = is_traceable(optimizer)
        arguments = dict(vars(optimizer)["trace_kwargs"]) if traced else {}
        make = vars(optimizer)["trace_symbol"] if traced else type(optimizer)
        return cls(make, tuple(groups), {k: v for k, v in arguments.items() if k != "params"})

    def build(self, parameters: Mapping[str, nn.Parameter]) -> torch.optim.Optimizer:
        """Return a new optimizer, without state, of parameters by name; missing ones are left out.

        Args:
            parameters: parameters by name; names that are gone are left out.
        """
        groups = [
            {"params": [parameters[name] for name in names if name in parameters], **values}
            for names, values in self.groups
        ]
        # What a constructor needs is in the groups too, except arguments that are no defaults.
        required = {"lr": groups[0]["lr"]} if "lr" in groups[0] else {}
        return self.make(groups, **{**required, **self.arguments})


def rebuilt_scheduler(scheduler: LRScheduler, optimizer: torch.optim.Optimizer) -> LRScheduler:
    """Return a scheduler for another optimizer: a traced one made anew, else a shallow copy.

    Args:
        scheduler: a traced one is built from its arguments; another one, and one that is composed
            of others (`SequentialLR`, `ChainedScheduler`), is copied with its state, and sets the
            learning rates of that state.
        optimizer: the optimizer that the new one changes.
    """
    if is_traceable(scheduler) and not _parts(scheduler):
        record = vars(scheduler)
        kwargs = {k: v for k, v in record["trace_kwargs"].items() if k != "optimizer"}
        args = record["trace_args"]
        if "optimizer" not in record["trace_kwargs"]:
            args = args[1:]
        made: LRScheduler = record["trace_symbol"](optimizer, *args, **kwargs)
        return made
    LambdaLR(optimizer, lambda _: 1.0)  # changes no rate; registers what every scheduler needs
    copied = _copied(scheduler, optimizer)
    # Many schedules multiply the present rate, so that a first factor would never be undone.
    for group, rate in zip(optimizer.param_groups, scheduler.get_last_lr(), strict=False):
        group["lr"] = rate
    return copied


def _copied(scheduler: LRScheduler, optimizer: torch.optim.Optimizer) -> LRScheduler:
    copied = copy.copy(scheduler)
    copied.optimizer = optimizer
    if parts := _parts(scheduler):
        vars(copied)[_PARTS] = [_copied(one, optimizer) for one in parts]
    return copied


def _parts(scheduler: LRScheduler) -> Sequence[LRScheduler]:
    """Return the schedulers that one is composed of; none for others."""
    parts: Sequence[LRScheduler] = vars(scheduler).get(_PARTS, ())
    return parts
