"""Layers of an architecture: their arguments, output shapes and numbers of weights.

Standard library only: trial code imports it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, TypeAlias

Shape: TypeAlias = tuple[int, ...]
"""Shape of a tensor without the batch axis: spatial sizes and then channels, or units alone."""

CONV: Final = "Conv"
NORM: Final = "BatchNormalization"
POOLING: Final = "Pooling"
GLOBAL_POOLING: Final = "GlobalPooling"
DROPOUT: Final = "Dropout"
DENSE: Final = "Dense"
RELU: Final = "ReLU"
SOFTMAX: Final = "Softmax"
FLATTEN: Final = "Flatten"
ADD: Final = "Add"
CONCATENATE: Final = "Concatenate"

MERGES: Final = frozenset({ADD, CONCATENATE})
"""Kinds with several inputs."""

_ARGUMENTS: Final = {
    CONV: (3, 5),
    NORM: (1, 1),
    POOLING: (3, 3),
    GLOBAL_POOLING: (0, 0),
    DROPOUT: (1, 1),
    DENSE: (2, 2),
    RELU: (0, 0),
    SOFTMAX: (0, 0),
    FLATTEN: (0, 0),
    ADD: (0, 0),
    CONCATENATE: (0, 0),
}
"""Least and greatest number of arguments, per kind."""

_NAME: Final = re.compile(r"Stub([A-Za-z]+?)([123]d)?")
_DIMENSIONAL: Final = frozenset({CONV, NORM, POOLING, GLOBAL_POOLING, DROPOUT})


@dataclass(frozen=True, slots=True)
class Layer:
    """Layer of a network: name, kind, arguments, and the nodes that it reads."""

    name: str
    """Name in JSON: `Stub`, the kind, and perhaps the number of spatial axes as in `2d`."""
    inputs: tuple[int, ...]
    """Nodes; several for `MERGES` only."""
    args: tuple[int | float, ...] = ()
    """Conv: channels in, filters, kernel, and perhaps stride (1) and padding (half the kernel).
    BatchNormalization: features. Pooling: kernel, stride, padding. Dropout: rate. Dense: units in,
    units out."""
    kind: str = field(init=False, compare=False, repr=False)
    """The name without `Stub` and the number of axes."""

    def __post_init__(self) -> None:
        """Raise ValueError unless name, arguments and number of inputs are valid."""
        match = _matched(self.name)
        if (
            match is None
            or match[1] not in _ARGUMENTS
            or ((match[2] is None) is (match[1] in _DIMENSIONAL))
        ):
            raise ValueError(f"layer must be a known one such as StubConv2d, got {self.name!r}")
        object.__setattr__(self, "kind", match[1])
        least, most = _ARGUMENTS[match[1]]
        if not least <= len(self.args) <= most or not all(map(_is_amount, self.args)):
            raise ValueError(
                f"{self.name} must have {least} to {most} numbers >= 0 as arguments, "
                f"got {list(self.args)}"
            )
        if not self.inputs or (len(self.inputs) > 1 and match[1] not in MERGES):
            raise ValueError(f"{self.name} has a wrong number of inputs: {list(self.inputs)}")

    @property
    def width(self) -> int:
        """Filters of a convolution, units of a dense layer; 0 of any other."""
        return int(self.args[1]) if self.kind in {CONV, DENSE} else 0

    def window(self) -> tuple[int, int, int]:
        """Return kernel size, stride and padding of a convolution or pooling layer."""
        kernel, *rest = (int(arg) for arg in self.args[2 if self.kind == CONV else 0 :])
        stride = rest[0] if rest else 1
        padding = rest[1] if len(rest) > 1 else kernel // 2
        return kernel, stride, padding


@cache
def _matched(name: str) -> re.Match[str] | None:
    return _NAME.fullmatch(name)


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def output_shape(layer: Layer, inputs: Sequence[Shape]) -> Shape:
    """Return the shape of a layer's output by those of its inputs; ValueError if they do not fit.

    Raises:
        ValueError: the layer does not fit to its inputs; the text says why.
    """
    first, kind = inputs[0], layer.kind
    if kind == ADD and any(shape != first for shape in inputs):
        raise ValueError(f"{layer.name} needs equal shapes, got {list(inputs)}")
    if kind == CONCATENATE:
        if any(shape[:-1] != first[:-1] for shape in inputs):
            raise ValueError(f"{layer.name} needs equal spatial sizes, got {list(inputs)}")
        return (*first[:-1], sum(shape[-1] for shape in inputs))
    if kind in {CONV, NORM, DENSE} and layer.args[0] != first[-1]:
        raise ValueError(f"{layer.name} takes {layer.args[0]} channels, got {first[-1]}")
    if kind == DENSE:
        if len(first) > 1:
            raise ValueError(f"{layer.name} needs a flat input, got {first}")
        return (layer.width,)
    if kind in {CONV, POOLING}:
        return _window_shape(layer, first)
    if kind == GLOBAL_POOLING:
        return first[-1:]
    return (math.prod(first),) if kind == FLATTEN else first


def _window_shape(layer: Layer, shape: Shape) -> Shape:
    kernel, stride, padding = layer.window()
    if min(kernel, stride) < 1:
        raise ValueError(f"{layer.name} needs kernel and stride >= 1, got {list(layer.args)}")
    spatial = tuple((size + 2 * padding - kernel) // stride + 1 for size in shape[:-1])
    if not spatial or min(spatial) < 1:
        raise ValueError(f"{layer.name} with window {kernel} finds nothing in {shape}")
    return (*spatial, layer.width or shape[-1])


def weights(layer: Layer, shape: Shape) -> int:
    """Return the number of trainable weights of a layer with an output of a given shape."""
    if layer.kind == CONV:
        kernel = layer.window()[0]
        window: int = kernel ** (len(shape) - 1)
        return layer.width * (int(layer.args[0]) * window + 1)
    if layer.kind == DENSE:
        return layer.width * (int(layer.args[0]) + 1)
    return 2 * int(layer.args[0]) if layer.kind == NORM else 0
