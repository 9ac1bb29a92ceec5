"""Batch norms that are folded into the layer before them."""

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from nni.compression.base.numerics import folded_batch_norm

_LAYERS: Final = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def is_batch_norm(module: nn.Module) -> bool:
    """Return whether a module is a batch norm of any number of dimensions."""
    return isinstance(module, _BatchNorm)


def fold_batch_norm(
    weight: Tensor, bias: Tensor | None, batch_norm: nn.Module
) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a layer with the running statistics of a batch norm folded in.

    Args:
        weight: `(channels, ...)`.
        bias: `(channels,)`; None for zeros.
        batch_norm: one that `folding_problem` accepts.

    Returns:
        Weight and bias, of their shapes.
    """
    assert isinstance(batch_norm, _BatchNorm)  # only such modules are folded
    mean, variance = batch_norm.running_mean, batch_norm.running_var
    assert mean is not None  # folding_problem has been asked
    assert variance is not None
    return folded_batch_norm(
        weight,
        bias,
        mean,
        variance,
        batch_norm.weight if batch_norm.affine else torch.ones_like(mean),
        batch_norm.bias if batch_norm.affine else torch.zeros_like(mean),
        batch_norm.eps,
    )


def folding_problem(layer: nn.Module, fused: tuple[nn.Module, ...]) -> str | None:
    """Return why modules cannot be fused with a layer; None if they can.

    Args:
        layer: the layer before them.
        fused: the modules that follow, in order.

    Examples:
        >>> from torch import nn
        >>> folding_problem(nn.Conv2d(1, 4, 3), (nn.BatchNorm2d(4), nn.ReLU())) is None
        True
        >>> folding_problem(nn.ReLU(), (nn.BatchNorm2d(4),))
        'a ReLU has no weight that a batch norm can be folded into'
    """
    if any(is_batch_norm(module) for module in fused[1:]):
        return "a batch norm can only be the second of the modules"
    batch_norm = fused[0]
    if not isinstance(batch_norm, _BatchNorm):
        return None
    if not isinstance(layer, _LAYERS):
        return f"a {type(layer).__name__} has no weight that a batch norm can be folded into"
    if batch_norm.running_mean is None:
        return "the batch norm has no running statistics"
    if layer.weight.shape[0] != batch_norm.num_features:
        return (
            f"the layer has {layer.weight.shape[0]} output channels, but the batch norm "
            f"{batch_norm.num_features}"
        )
    return None
