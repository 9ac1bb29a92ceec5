"""Caches of tensors that modules compute from their parameters.

Some modules keep a tensor that follows from a parameter, such as a table of position biases, in a
dict. After a removal its size is wrong, and before one it hides the parameter. A model computes the
same without the content of its caches, only slower; this tells a cache from other dicts.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.running import run, tensors_in, unchanged


def tensor_dicts(model: nn.Module) -> list[dict[Any, Any]]:
    """Return the non-empty dicts in modules' attributes, no registries, that hold tensors only.

    Args:
        model: The model.

    Returns:
        The dicts that are not empty.
    """
    return [
        value
        for module in model.modules()
        for name, value in vars(module).items()
        if type(value) is dict
        and value
        and name not in {"_parameters", "_buffers", "_modules"}
        and all(isinstance(one, Tensor) for one in value.values())
    ]


def independent_copy(model: nn.Module) -> nn.Module:
    """Return a deep copy of a model, in which computed tensors are detached clones.

    Tensors that the last run left in attributes and dicts, with their history of gradients, are
    copied without the history; `copy.deepcopy` alone would refuse them.

    Args:
        model: The model.

    Returns:
        A copy that shares no tensor with the model.
    """
    kept = [vars(module) for module in model.modules()]
    values = [one for own in [*kept, *tensor_dicts(model)] for one in own.values()]
    memo = {
        id(one): one.detach().clone()
        for one in values
        if isinstance(one, Tensor) and not one.is_leaf
    }
    return copy.deepcopy(model, memo)


def clear_caches(model: nn.Module, inputs: Inputs) -> int:
    """Clear dicts of tensors if the outputs stay equal, else restore them; return the number.

    Args:
        model: The model. A dict without which it fails or computes something else is no cache; then
            nothing is cleared.
        inputs: Example inputs.

    Returns:
        How many caches were cleared.

    Examples:
        >>> import torch
        >>> from nni.compression.speedup.caches import clear_caches
        >>> clear_caches(torch.nn.Linear(2, 2), torch.zeros(1, 2))
        0
    """
    found = tensor_dicts(model)
    if not found:
        return 0
    contents = [dict(one) for one in found]
    before = _outputs(model, inputs)
    for one in found:
        one.clear()
    try:
        after = _outputs(model, inputs)
        same = len(before) == len(after) and all(map(torch.equal, before, after))
    except Exception:  # noqa: BLE001 - code of users raises anything
        same = False
    if same:
        return len(found)
    for one, content in zip(found, contents, strict=True):
        one.update(content)
    return 0


def _outputs(model: nn.Module, inputs: Inputs) -> list[Tensor]:
    with unchanged(model):
        return [one.nan_to_num() for one in tensors_in(run(model, inputs))]
