"""Layer that computes with floating-point numbers of 16 bits inside a model of 32."""

from typing import Any

from torch import Tensor, nn


class HalfLayer(nn.Module):
    """Module that computes a layer in 16 bits, and converts inputs to these, the output to 32.

    Args:
        layer: the layer; its parameters are converted.

    Examples:
        >>> import torch
        >>> HalfLayer(nn.Linear(1, 1))(torch.ones(1, 1)).dtype
        torch.float32
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer.half()

    def forward(self, *inputs: Tensor, **options: Any) -> Tensor:  # noqa: ANN401 - of the layer
        """Return the layer's output as float32, computed in float16."""
        result: Tensor = self.layer(*(one.half() for one in inputs), **options)
        return result.float()


def with_half_layers(model: nn.Module, names: tuple[str, ...]) -> nn.Module:
    """Replace layers, in place, by ones that compute in 16 bits; return the model, or it wrapped.

    Args:
        model: changed in place.
        names: dotted names of the layers; the empty one is the model itself.
    """
    if names == ("",):
        return HalfLayer(model)
    for name in names:
        owner, _, child = name.rpartition(".")
        parent = model.get_submodule(owner)
        setattr(parent, child, HalfLayer(parent.get_submodule(child)))
    return model
