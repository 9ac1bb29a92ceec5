"""Registry of the layers whose sizes share weights, by type of layer."""

from __future__ import annotations

from torch import nn

from nni.nas.oneshot.pytorch.attention_layers import AttentionSlicing
from nni.nas.oneshot.pytorch.dense_layers import (
    BatchNormSlicing,
    ConvolutionSlicing,
    LayerNormSlicing,
    LinearSlicing,
)
from nni.nas.oneshot.pytorch.dropout_layers import DROPOUTS, DropoutSlicing
from nni.nas.oneshot.pytorch.layer_slicing import LayerSlicing

_registry: dict[type[nn.Module], LayerSlicing] = {
    slicing.layer: slicing
    for slicing in (
        LinearSlicing(),
        ConvolutionSlicing(),
        BatchNormSlicing(),
        LayerNormSlicing(),
        AttentionSlicing(),
        *(DropoutSlicing(layer) for layer in DROPOUTS),
    )
}


def register_layer_slicing(slicing: LayerSlicing) -> None:
    """Register the weight-sharing rules of a type of layer, for this process; replace others.

    Args:
        slicing: rules of the type; they replace rules registered before for the same type.

    Raises:
        TypeError: `slicing` is not an instance of `LayerSlicing`.

    Examples:
        >>> register_layer_slicing(nn.Linear)
        Traceback (most recent call last):
        TypeError: slicing must be an instance of LayerSlicing, got <class '...Linear'>...
    """
    if not isinstance(slicing, LayerSlicing):
        raise TypeError(
            f"slicing must be an instance of LayerSlicing, got {slicing!r}; subclass LayerSlicing "
            "and pass an instance"
        )
    _registry[slicing.layer] = slicing


def slicing_of(layer: nn.Module | type[nn.Module]) -> LayerSlicing | None:
    """Return the slicing registered for a layer's class or nearest base; None if there is none.

    Args:
        layer: layer or its type.

    Returns:
        The rules of the nearest base class that has any; None without one.
    """
    kind = layer if isinstance(layer, type) else type(layer)
    return next((_registry[base] for base in kind.__mro__ if base in _registry), None)
