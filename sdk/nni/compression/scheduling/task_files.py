"""Files of tasks: whole models, masks and configuration lists.

A file of a model runs code when it is read. Read only files that this user has written.
"""

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

Masks = Mapping[str, Mapping[str, Tensor | None]]
"""Masks of 0 and 1 by module name and target name."""


def save_model(model: nn.Module, path: Path) -> None:
    """Write a whole model, its classes by reference; raise TypeError if it cannot be pickled.

    Args:
        model: an unwrapped model.
        path: the file.

    Raises:
        TypeError: the model cannot be saved, for example because its class is in a function.
        OSError: the file cannot be written.
    """
    try:
        torch.save(model, path)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        path.unlink(missing_ok=True)
        raise TypeError(
            f"the model cannot be saved: {error}; define its classes and functions at the top of a "
            "module"
        ) from error


def load_model(path: Path) -> nn.Module:
    """Return a model from a file of this user, which may run code; raise if it holds no module.

    Args:
        path: a file of `save_model`.

    Raises:
        TypeError: the file holds something else.
        OSError: the file cannot be read.
    """
    found = torch.load(path, weights_only=False)
    if not isinstance(found, nn.Module):
        raise TypeError(f"{path} must hold a torch.nn.Module, got {type(found).__name__}")
    return found


def save_masks(masks: Masks, path: Path) -> None:
    """Write masks, tensors only.

    Args:
        masks: masks by module and target name.
        path: the file.

    Raises:
        OSError: the file cannot be written.
    """
    torch.save({name: dict(targets) for name, targets in masks.items()}, path)


def load_masks(path: Path) -> dict[str, dict[str, Tensor]]:
    """Return masks from a file, of which only tensors are read.

    Args:
        path: a file of `save_masks`.

    Raises:
        OSError: the file cannot be read.
    """
    return cast("dict[str, dict[str, Tensor]]", torch.load(path, weights_only=True))


def save_config_list(config_list: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write a configuration list as JSON.

    Args:
        config_list: entries of NNI 3.0 or 2.x.
        path: the file.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(json.dumps([dict(entry) for entry in config_list], indent=1), encoding="utf-8")


def load_config_list(path: Path) -> list[dict[str, object]]:
    """Return a configuration list from a file.

    Args:
        path: a file of `save_config_list`.

    Raises:
        OSError: the file cannot be read.
    """
    return cast("list[dict[str, object]]", json.loads(path.read_text(encoding="utf-8")))
