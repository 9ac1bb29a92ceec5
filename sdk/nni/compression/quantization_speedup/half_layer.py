"""Layer that computes with floating-point numbers of 16 bits inside a model of 32."""

import copy
from typing import Any

from torch import Tensor, nn


class HalfLayer(nn.Module):
    """Module that computes a layer in 16 bits, and converts inputs to these, the output to 32.

    Its other attributes are those of the layer, `weight` and `bias` as float32: modules such as
    `nn.MultiheadAttention` read them instead of calling the layer.

    Args:
        layer: the layer; it is not changed, since others may share its parameters.

    Examples:
        >>> import torch
        >>> HalfLayer(nn.Linear(1, 1))(torch.ones(1, 1)).dtype
        torch.float32
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = copy.deepcopy(layer).half()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the layer
        """Return an attribute of the layer, tensors as float32."""
        if name in {"_parameters", "_buffers", "_modules", "layer"}:
            return super().__getattr__(name)
        found = getattr(self.layer, name)
        return found.float() if isinstance(found, Tensor) else found

    def forward(self, *inputs: Any, **options: Any) -> Tensor:  # noqa: ANN401 - of the layer
        """Return the layer's output as float32, computed in float16."""
        named = {name: _halved(one) for name, one in options.items()}
        result: Tensor = self.layer(*map(_halved, inputs), **named)
        return result.float()


def _halved(value: object) -> object:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.half()
    return value


def with_half_layers(model: nn.Module, names: tuple[str, ...]) -> nn.Module:
    """Replace layers, in place, by ones that compute in 16 bits; return the model, or it wrapped.

    Args:
        model: changed in place, under each name that it has for a layer.
        names: dotted names of the layers; the empty one is the model itself.
    """
    if names == ("",):
        return HalfLayer(model)
    halves = {id(one): HalfLayer(one) for one in map(model.get_submodule, names)}
    for owner in [one for one in model.modules() if not isinstance(one, HalfLayer)]:
        for name, child in owner._modules.items():  # noqa: SLF001 - named_children omits second names
            if id(child) in halves:
                owner._modules[name] = halves[id(child)]  # noqa: SLF001
    return model
