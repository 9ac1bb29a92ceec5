"""Formulas of torch's layers: shape of the output, FLOPs, number of parameters.

Sizes and arguments may be expressions. FLOPs are per sample: the batch is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from torch import nn
from torch.nn.modules import batchnorm, instancenorm, pooling

from nni.mutable.expression import apply
from nni.nas.profiler.pytorch.arguments import argument, component, has_bias
from nni.nas.profiler.pytorch.cases import Number
from nni.nas.profiler.pytorch.counter_config import FlopsParamsCounterConfig
from nni.nas.profiler.pytorch.recurrent_formulas import (
    cell_flops,
    cell_shape,
    recurrent_flops,
    recurrent_shape,
)
from nni.nas.profiler.pytorch.shapes import MutableShape, ShapeTensor, product

ShapeFormula = Callable[..., Any]
"""From a layer and its inputs, each a `ShapeTensor`, to the output."""
FlopsFormula = Callable[[Any, Sequence[Any], Any, FlopsParamsCounterConfig], Number]
"""From a layer, its inputs, its output, and what is counted, to FLOPs."""
ParamsFormula = Callable[[Any, FlopsParamsCounterConfig], Number]
"""From a layer with mutable arguments, and what is counted, to the number of parameters."""

CONVOLUTIONS: Final = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED_CONVOLUTIONS: Final = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
BATCH_NORMS: Final = (batchnorm._BatchNorm, instancenorm._InstanceNorm)  # noqa: SLF001 - common bases
NORMS: Final = (*BATCH_NORMS, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
ACTIVATIONS: Final = (
    *(nn.CELU, nn.ELU, nn.GELU, nn.GLU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh),
    *(nn.LeakyReLU, nn.LogSigmoid, nn.LogSoftmax, nn.Mish, nn.PReLU, nn.RReLU, nn.ReLU, nn.ReLU6),
    *(nn.SELU, nn.SiLU, nn.Sigmoid, nn.Softmax, nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh),
    nn.Tanhshrink,
)
_FIXED_POOLS: Final = (pooling._MaxPoolNd, pooling._AvgPoolNd)  # noqa: SLF001 - common bases
_ADAPTIVE_POOLS: Final = (pooling._AdaptiveAvgPoolNd, pooling._AdaptiveMaxPoolNd)  # noqa: SLF001


def same_shape(_: nn.Module, tensor: ShapeTensor, *__: Any) -> ShapeTensor:  # noqa: ANN401 - other inputs
    """Return the shape of the first input.

    Args:
        tensor: first input.

    Examples:
        >>> same_shape(nn.ReLU(), ShapeTensor((1, 3)))
        ShapeTensor((1, 3))
    """
    return tensor


def convolution_shape(module: Any, tensor: ShapeTensor) -> ShapeTensor:  # noqa: ANN401 - of any dimension
    """Return the output shape of a convolution.

    Args:
        module: convolution.
        tensor: `(batch, channels, ...)`.

    Examples:
        >>> convolution_shape(nn.Conv2d(3, 8, 3, stride=2, padding=1), ShapeTensor((1, 3, 9, 9)))
        ShapeTensor((1, 8, 5, 5))
    """
    padding = argument(module, "padding")
    if isinstance(padding, str) and padding == "same":
        return ShapeTensor((tensor.shape[0], argument(module, "out_channels"), *tensor.shape[2:]))
    padding = 0 if isinstance(padding, str) else padding
    spatial = _spatial(module, tensor, padding, argument(module, "dilation"))
    return ShapeTensor((tensor.shape[0], argument(module, "out_channels"), *spatial))


def _spatial(
    module: nn.Module,
    tensor: ShapeTensor,
    padding: Any,  # noqa: ANN401 - number, tuple or expression
    dilation: Any,  # noqa: ANN401 - number, tuple or expression
) -> list[Number]:
    kernel, stride = argument(module, "kernel_size"), argument(module, "stride")
    stride = kernel if stride is None else stride
    ceil_mode = bool(getattr(module, "ceil_mode", False))
    return [
        apply(
            _windows,
            [
                size,
                component(padding, at),
                component(dilation, at),
                component(kernel, at),
                component(stride, at),
                ceil_mode,
            ],
        )
        for at, size in enumerate(tensor.shape[2:])
    ]


def _windows(
    size: int,
    padding: int,
    dilation: int,
    kernel: int,
    stride: int,
    ceil_mode: bool,  # noqa: FBT001
) -> int:
    steps = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return steps // stride + 1
    count = -(-steps // stride) + 1
    # A window must begin inside the input or its left padding.
    return count - 1 if (count - 1) * stride >= size + padding else count


def _pool_shape(module: Any, tensor: ShapeTensor) -> Any:  # noqa: ANN401 - of any dimension
    spatial = _spatial(module, tensor, argument(module, "padding"), getattr(module, "dilation", 1))
    return _with_indices(module, ShapeTensor((*tensor.shape[:2], *spatial), tensor.dtype))


def _with_indices(module: nn.Module, output: ShapeTensor) -> Any:  # noqa: ANN401 - one or two
    """Return the output of a pooling; with `return_indices` also their shape, which is the same."""
    return (output, output) if getattr(module, "return_indices", False) else output


def _adaptive_pool_shape(module: Any, tensor: ShapeTensor) -> Any:  # noqa: ANN401 - layer
    wanted = argument(module, "output_size")
    sizes = [component(wanted, at) for at in range(tensor.ndim - 2)]
    kept = [
        own if size is None else size for own, size in zip(tensor.shape[2:], sizes, strict=True)
    ]
    return _with_indices(module, ShapeTensor((*tensor.shape[:2], *kept), tensor.dtype))


def _linear_shape(module: Any, tensor: ShapeTensor, *_: ShapeTensor) -> ShapeTensor:  # noqa: ANN401 - layer
    return ShapeTensor((*tensor.shape[:-1], argument(module, "out_features")))


def _flatten_shape(module: Any, tensor: ShapeTensor) -> Any:  # noqa: ANN401 - layer
    return tensor.flatten(argument(module, "start_dim"), argument(module, "end_dim"))


def _embedding_shape(module: Any, tensor: ShapeTensor) -> ShapeTensor:  # noqa: ANN401 - layer
    return ShapeTensor((*tensor.shape, argument(module, "embedding_dim")))


def _attention_shape(
    module: Any,  # noqa: ANN401 - layer
    query: ShapeTensor,
    key: ShapeTensor,
    _: ShapeTensor,
    *__: Any,  # noqa: ANN401 - masks
    **___: Any,  # noqa: ANN401 - options
) -> tuple[ShapeTensor, ShapeTensor]:
    at = 1 if module.batch_first else 0
    batch = query.shape[1 - at]
    return query, ShapeTensor((batch, query.shape[at], key.shape[at]))


def _halved_shape(module: Any, tensor: ShapeTensor) -> ShapeTensor:  # noqa: ANN401 - layer
    shape, dim = list(tensor.shape), argument(module, "dim")
    shape[dim] = shape[dim] // 2
    return ShapeTensor(shape, tensor.dtype)


def _upsample_shape(module: Any, tensor: ShapeTensor) -> ShapeTensor:  # noqa: ANN401 - layer
    if module.size is not None:
        sizes = [component(module.size, at) for at in range(tensor.ndim - 2)]
    else:
        sizes = [
            apply(_scaled, [size, component(module.scale_factor, at)])
            for at, size in enumerate(tensor.shape[2:])
        ]
    return ShapeTensor((*tensor.shape[:2], *sizes))


def _scaled(size: int, factor: float) -> int:
    return math.floor(size * factor)


SHAPE_FORMULAS: dict[Any, ShapeFormula] = {
    **dict.fromkeys((*ACTIVATIONS, *NORMS), same_shape),
    **dict.fromkeys((nn.Identity, nn.modules.dropout._DropoutNd), same_shape),  # noqa: SLF001 - common base
    **dict.fromkeys(CONVOLUTIONS, convolution_shape),
    **dict.fromkeys(_FIXED_POOLS, _pool_shape),
    **dict.fromkeys(_ADAPTIVE_POOLS, _adaptive_pool_shape),
    nn.Bilinear: _linear_shape,
    nn.Embedding: _embedding_shape,
    nn.Flatten: _flatten_shape,
    nn.GLU: _halved_shape,
    nn.Linear: _linear_shape,
    nn.MultiheadAttention: _attention_shape,
    nn.RNNBase: recurrent_shape,
    nn.RNNCellBase: cell_shape,
    nn.Upsample: _upsample_shape,
}
"""Class of a layer to its shape formula; it holds for subclasses too."""


def _elements(shape: MutableShape) -> Number:
    """Return the number of elements of a shape without its first dimension, the batch."""
    return product(shape[1:])


def _convolution_flops(
    module: Any,  # noqa: ANN401 - of any dimension
    inputs: Sequence[Any],
    output: ShapeTensor,
    config: FlopsParamsCounterConfig,
) -> Number:
    window = _weights_of_one_output(module, len(inputs[0].shape) - 2)
    bias = has_bias(module) if config.count_bias else 0
    return _elements(output.shape) * (window + bias)


def _transposed_convolution_flops(
    module: Any,  # noqa: ANN401 - of any dimension
    inputs: Sequence[Any],
    output: ShapeTensor,
    config: FlopsParamsCounterConfig,
) -> Number:
    """Return the FLOPs of a convolution that spreads each number of its input over a window."""
    dims = len(inputs[0].shape) - 2
    kernel = argument(module, "kernel_size")
    area = product([component(kernel, at) for at in range(dims)])
    spread = area * (argument(module, "out_channels") // argument(module, "groups"))
    bias = has_bias(module) if config.count_bias else 0
    return _elements(inputs[0].shape) * spread + _elements(output.shape) * bias


def _weights_of_one_output(module: nn.Module, dims: int) -> Number:
    """Return the number of weights of a convolution that one number of its output needs."""
    kernel = argument(module, "kernel_size")
    area = product([component(kernel, at) for at in range(dims)])
    return area * (argument(module, "in_channels") // argument(module, "groups"))


def _linear_flops(
    module: Any,  # noqa: ANN401 - layer
    _: Sequence[Any],
    output: ShapeTensor,
    config: FlopsParamsCounterConfig,
) -> Number:
    bias = has_bias(module) if config.count_bias else 0
    return _elements(output.shape) * (argument(module, "in_features") + bias)


def _bilinear_flops(
    module: Any,  # noqa: ANN401 - layer
    _: Sequence[Any],
    output: ShapeTensor,
    config: FlopsParamsCounterConfig,
) -> Number:
    """Return the FLOPs of x1 (A x2) + b for each output: in1 in2 for A x2, in1 for x1, the bias."""
    first, second = argument(module, "in1_features"), argument(module, "in2_features")
    bias = has_bias(module) if config.count_bias else 0
    return _elements(output.shape) * (first * second + first + bias)


def _norm_flops(
    module: Any,  # noqa: ANN401 - layer
    inputs: Sequence[Any],
    _: Any,  # noqa: ANN401 - output
    config: FlopsParamsCounterConfig,
) -> Number:
    if not config.count_normalization:
        return 0
    return _elements(inputs[0].shape) * _norm_factor(module)


def _norm_factor(module: nn.Module) -> Number:
    """Return the FLOPs of one element: two to normalize, two more to scale and shift.

    An RMS normalization squares and divides, and only scales (Zhang and Sennrich, Root Mean Square
    Layer Normalization, 2019).
    """
    name = "elementwise_affine" if isinstance(module, nn.LayerNorm | nn.RMSNorm) else "affine"
    affine = apply(int, [argument(module, name)], "int({})")
    return 2 + (1 if isinstance(module, nn.RMSNorm) else 2) * affine


def _activation_flops(
    _: Any,  # noqa: ANN401 - layer
    inputs: Sequence[Any],
    __: Any,  # noqa: ANN401 - output
    config: FlopsParamsCounterConfig,
) -> Number:
    return _elements(inputs[0].shape) if config.count_activation else 0


def _attention_flops(
    module: Any,  # noqa: ANN401 - layer
    inputs: Sequence[Any],
    _: Any,  # noqa: ANN401 - output
    config: FlopsParamsCounterConfig,
) -> Number:
    at = 1 if module.batch_first else 0
    queries, keys = inputs[0].shape[at], inputs[1].shape[at]
    width, heads = argument(module, "embed_dim"), argument(module, "num_heads")
    key_width, value_width = (
        width if argument(module, name) is None else argument(module, name)
        for name in ("kdim", "vdim")
    )
    bias = int(module.in_proj_bias is not None and config.count_bias)
    projections = (
        queries * width * (width + bias)
        + keys * width * (key_width + bias)
        + keys * width * (value_width + bias)
        + queries * width * (width + bias)
    )
    scaling, products = queries * width, 2 * queries * keys * width
    softmax = heads * queries * keys if config.count_activation else 0
    return projections + scaling + products + softmax


FLOPS_FORMULAS: dict[Any, FlopsFormula] = {
    **dict.fromkeys(CONVOLUTIONS, _convolution_flops),
    **dict.fromkeys(NORMS, _norm_flops),
    **dict.fromkeys(ACTIVATIONS, _activation_flops),
    **dict.fromkeys(TRANSPOSED_CONVOLUTIONS, _transposed_convolution_flops),
    nn.Bilinear: _bilinear_flops,
    nn.Linear: _linear_flops,
    nn.MultiheadAttention: _attention_flops,
    nn.RNNBase: recurrent_flops,
    nn.RNNCellBase: cell_flops,
}
"""Class of a layer to its FLOPs formula; it holds for subclasses too, and others count as 0."""


def _convolution_params(module: Any, config: FlopsParamsCounterConfig) -> Number:  # noqa: ANN401
    dims = next(at for at, one in enumerate(CONVOLUTIONS, start=1) if isinstance(module, one))
    bias = has_bias(module) if config.count_bias else 0
    return argument(module, "out_channels") * (_weights_of_one_output(module, dims) + bias)


def _linear_params(module: Any, config: FlopsParamsCounterConfig) -> Number:  # noqa: ANN401
    bias = has_bias(module) if config.count_bias else 0
    return argument(module, "out_features") * (argument(module, "in_features") + bias)


def _batch_norm_params(module: Any, config: FlopsParamsCounterConfig) -> Number:  # noqa: ANN401
    if not config.count_normalization:
        return 0
    affine = apply(int, [argument(module, "affine")], "int({})")
    name = "num_channels" if isinstance(module, nn.GroupNorm) else "num_features"
    return 2 * argument(module, name) * affine


def _embedding_params(module: Any, _: FlopsParamsCounterConfig) -> Number:  # noqa: ANN401 - layer
    return argument(module, "num_embeddings") * argument(module, "embedding_dim")


PARAMS_FORMULAS: dict[Any, ParamsFormula] = {
    **dict.fromkeys(CONVOLUTIONS, _convolution_params),
    **dict.fromkeys((*BATCH_NORMS, nn.GroupNorm), _batch_norm_params),
    nn.Embedding: _embedding_params,
    nn.Linear: _linear_params,
}
"""Class of a layer to its formula for mutable arguments; others are built for each value."""


def formula_of(module: nn.Module, formulas: dict[Any, Any]) -> Any:  # noqa: ANN401 - formula or None
    """Return the formula of a module's class or of the nearest of its bases; None without one.

    Args:
        module: any module.
        formulas: class to formula.

    Examples:
        >>> formula_of(nn.ReLU6(), SHAPE_FORMULAS) is same_shape
        True
    """
    return next((formulas[one] for one in type(module).__mro__ if one in formulas), None)


def checked_class(module_type: object) -> None:
    """Raise TypeError unless an object is a class of `torch.nn.Module`.

    Args:
        module_type: must be a class of modules.

    Raises:
        TypeError: it is not.

    Examples:
        >>> checked_class(nn.Linear)
    """
    if not (isinstance(module_type, type) and issubclass(module_type, nn.Module)):
        raise TypeError(f"module_type must be a class of torch.nn.Module, got {module_type!r}")
