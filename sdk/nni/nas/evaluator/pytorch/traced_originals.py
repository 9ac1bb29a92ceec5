"""Trainer of Lightning and loader of torch, traced, and new trainers in place of used ones."""

import copy
from collections.abc import Iterator
from typing import Any

import pytorch_lightning
import torch.utils.data
from pytorch_lightning.trainer.states import TrainerStatus

import nni
from nni.common.serializer import is_traceable

Trainer = nni.trace(pytorch_lightning.Trainer)
"""`pytorch_lightning.Trainer`, traced."""
DataLoader = nni.trace(torch.utils.data.DataLoader)
"""`torch.utils.data.DataLoader`, traced."""


def is_used(trainer: pytorch_lightning.Trainer) -> bool:
    """Return whether a trainer has run; a second run would continue from the state of the first.

    Args:
        trainer: trainer of Lightning.
    """
    return trainer.state.status != TrainerStatus.INITIALIZING


def is_interrupted(trainer: pytorch_lightning.Trainer) -> bool:
    """Return whether the last run of a trainer has ended by an interrupt or an error.

    Args:
        trainer: trainer of Lightning.
    """
    return trainer.state.status == TrainerStatus.INTERRUPTED


def new_trainer(trainer: Any, callbacks: Any) -> pytorch_lightning.Trainer:  # noqa: ANN401 - traced
    """Construct an unused trainer with the arguments of another one, and copied callbacks.

    Args:
        trainer: traced trainer.
        callbacks: callbacks in their first state, which are copied; None for none.
    """
    call = trainer.trace_copy()
    if callbacks is not None:
        call.trace_kwargs["callbacks"] = copy.deepcopy(callbacks)
    made: pytorch_lightning.Trainer = call.get()
    return made


def untraced_loaders(loaders: Any) -> Iterator[str]:  # noqa: ANN401 - as Lightning takes them
    """Yield class names of data loaders that `nni.trace` has no record of; lists are searched.

    Args:
        loaders: loader, or lists and dicts of loaders.
    """
    if isinstance(loaders, dict):
        loaders = list(loaders.values())
    if isinstance(loaders, list | tuple):
        for one in loaders:
            yield from untraced_loaders(one)
    elif isinstance(loaders, torch.utils.data.DataLoader) and not is_traceable(loaders):
        yield type(loaders).__qualname__
