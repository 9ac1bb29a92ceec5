"""Shared weights of linear and convolutional layers, and of normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.nas.oneshot.pytorch.layer_slicing import (
    Arguments,
    LayerSlicing,
    Plan,
    leading,
)

Pair = tuple[int, int]


class LinearSlicing(LayerSlicing):
    """Rules that share the first rows and columns of the weights of `torch.nn.Linear`."""

    layer: ClassVar[type[nn.Module]] = nn.Linear
    searchable: ClassVar[tuple[str, ...]] = ("in_features", "out_features")

    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        """Return slices of the first rows and columns of the weights, by parameter name."""
        assert isinstance(storage, nn.Linear)
        rows, columns = arguments["out_features"], arguments["in_features"]
        state = {"weight": storage.weight[:rows, :columns]}
        return {**state, **_sliced_bias(storage, rows)}

    def run(self, storage: nn.Module, arguments: Arguments, inputs: tuple[Any, ...]) -> Tensor:
        """Return the output of a linear layer with one option's slice of the weights."""
        state = self.sliced_state(storage, arguments)
        (features,) = inputs
        return functional.linear(features, state["weight"], state.get("bias"))

    def plan(self, storage: nn.Module, options: Sequence[Arguments]) -> Plan:
        """Return tensors of 0 and 1: which rows and columns each option uses."""
        assert isinstance(storage, nn.Linear)
        rows, columns = storage.weight.shape
        return {
            "rows": leading([option["out_features"] for option in options], rows),
            "columns": leading([option["in_features"] for option in options], columns),
        }

    def mix(
        self,
        storage: nn.Module,
        options: Sequence[Arguments],
        plan: Plan,
        probabilities: Tensor,
        inputs: tuple[Any, ...],
    ) -> Tensor:
        """Return the output under the expected weights, which equals the expected output."""
        del options
        assert isinstance(storage, nn.Linear)
        rows, share = shares(plan, probabilities, storage.weight.dtype)
        bias = bias_of(storage)
        (features,) = inputs
        mixed = None if bias is None else bias * rows
        return functional.linear(features, storage.weight * share, mixed)


class ConvolutionSlicing(LayerSlicing):
    """Rules that share the first filters and channels, and the kernel's centre, of `Conv2d`.

    The storage has no groups: its second dimension is the largest number of channels in a group.
    """

    layer: ClassVar[type[nn.Module]] = nn.Conv2d
    searchable: ClassVar[tuple[str, ...]] = (
        "in_channels",
        "out_channels",
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "groups",
    )

    def storage(self, options: Sequence[Arguments]) -> nn.Module:
        """Return a new convolution with the most filters, channels per group, kernel positions."""
        kernels = [pair(option["kernel_size"]) for option in options]
        largest = {
            "in_channels": max(group_width(option) for option in options),
            "out_channels": max(option["out_channels"] for option in options),
            "kernel_size": (max(high for high, _ in kernels), max(wide for _, wide in kernels)),
            "groups": 1,
        }
        return nn.Conv2d(**{**options[0], **largest})

    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        """Return slices of the first filters and channels, with the centre of the kernels."""
        assert isinstance(storage, nn.Conv2d)
        filters, channels = arguments["out_channels"], group_width(arguments)
        high, wide = pair(arguments["kernel_size"])
        top = (storage.weight.shape[2] - high) // 2
        left = (storage.weight.shape[3] - wide) // 2
        kernel = storage.weight[:filters, :channels, top : top + high, left : left + wide]
        return {"weight": kernel, **_sliced_bias(storage, filters)}

    def run(self, storage: nn.Module, arguments: Arguments, inputs: tuple[Any, ...]) -> Tensor:
        """Return the output of a convolution with one option's slice of the kernels."""
        state = self.sliced_state(storage, arguments)
        (features,) = inputs
        return convolve(features, state["weight"], state.get("bias"), arguments)

    def plan(self, storage: nn.Module, options: Sequence[Arguments]) -> Plan:
        """Return tensors of 0 and 1: filters, and channels with kernel positions, of each option.

        Raises:
            ValueError: options differ in stride, dilation or padding such that their outputs have
                different sizes, or in the sizes of their groups.
        """
        assert isinstance(storage, nn.Conv2d)
        _check_alignment(storage, options)
        filters, channels, high, wide = storage.weight.shape
        rows = leading([option["out_channels"] for option in options], filters)
        groups = leading([group_width(option) for option in options], channels)
        windows = torch.stack([_window(option, high, wide) for option in options])
        columns = groups[:, :, None, None] * windows[:, None]
        return {"rows": rows, "columns": columns.flatten(1)}

    def mix(
        self,
        storage: nn.Module,
        options: Sequence[Arguments],
        plan: Plan,
        probabilities: Tensor,
        inputs: tuple[Any, ...],
    ) -> Tensor:
        """Return the output under the expected kernels, which equals the expected output."""
        assert isinstance(storage, nn.Conv2d)
        rows, share = shares(plan, probabilities, storage.weight.dtype)
        bias = bias_of(storage)
        mixed = None if bias is None else bias * rows
        (features,) = inputs
        weight = storage.weight * share.view_as(storage.weight)
        return convolve(features, weight, mixed, _widest(options))


class BatchNormSlicing(LayerSlicing):
    """Rules that share the first channels of `torch.nn.BatchNorm2d`, statistics included."""

    layer: ClassVar[type[nn.Module]] = nn.BatchNorm2d
    searchable: ClassVar[tuple[str, ...]] = ("num_features", "eps", "momentum")

    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        """Return slices of the first channels of weights and statistics, by name."""
        assert isinstance(storage, nn.BatchNorm2d)
        width = arguments["num_features"]
        return {
            name: value[:width] if value.dim() else value
            for name, value in storage.state_dict(keep_vars=True).items()
        }

    def run(self, storage: nn.Module, arguments: Arguments, inputs: tuple[Any, ...]) -> Tensor:
        """Return the output of one option; in training mode the statistics are updated."""
        assert isinstance(storage, nn.BatchNorm2d)
        state = self.sliced_state(storage, arguments)
        momentum = arguments.get("momentum", storage.momentum)
        if storage.training and storage.num_batches_tracked is not None:
            storage.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(storage.num_batches_tracked)
        mean, variance = state.get("running_mean"), state.get("running_var")
        (features,) = inputs
        return functional.batch_norm(
            features,
            mean,
            variance,
            state.get("weight"),
            state.get("bias"),
            training=storage.training or mean is None,
            momentum=0.0 if momentum is None else momentum,
            eps=arguments.get("eps", storage.eps),
        )

    def narrowed(self, value: Any, arguments: Arguments) -> Tensor:  # noqa: ANN401 - the contract
        """Return the first channels of the input, as many as an option has."""
        narrow: Tensor = value[:, : arguments["num_features"]]
        return narrow


class LayerNormSlicing(LayerSlicing):
    """Rules that share the first entries of normalized dimensions of `torch.nn.LayerNorm`."""

    layer: ClassVar[type[nn.Module]] = nn.LayerNorm
    searchable: ClassVar[tuple[str, ...]] = ("normalized_shape", "eps")

    def storage(self, options: Sequence[Arguments]) -> nn.Module:
        """Return a new normalization with the largest size of each dimension."""
        shapes = [shape_of(option["normalized_shape"]) for option in options]
        largest = [max(sizes) for sizes in zip(*shapes, strict=True)]
        return nn.LayerNorm(**{**options[0], "normalized_shape": largest})

    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        """Return slices of the first entries of the weights, by parameter name."""
        assert isinstance(storage, nn.LayerNorm)
        window = tuple(slice(size) for size in shape_of(arguments["normalized_shape"]))
        return {name: value[window] for name, value in storage.named_parameters()}

    def run(self, storage: nn.Module, arguments: Arguments, inputs: tuple[Any, ...]) -> Tensor:
        """Return the input normalized over one option's shape, with its slice of the weights."""
        assert isinstance(storage, nn.LayerNorm)
        state = self.sliced_state(storage, arguments)
        shape = list(shape_of(arguments["normalized_shape"]))
        eps = arguments.get("eps", storage.eps)
        (features,) = inputs
        weight, bias = state.get("weight"), state.get("bias")
        return functional.layer_norm(features, shape, weight, bias, eps)

    def narrowed(self, value: Any, arguments: Arguments) -> Tensor:  # noqa: ANN401 - the contract
        """Return the input cut to the first entries of normalized dimensions that an option has."""
        window = (slice(size) for size in shape_of(arguments["normalized_shape"]))
        narrow: Tensor = value[(..., *window)]
        return narrow


def shares(plan: Plan, probabilities: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the probability that a row, and that an entry, of the weights is part of an option.

    Args:
        plan: `rows`, `(options, rows)`, and `columns`, `(options, columns)`, of 0 and 1.
        probabilities: `(options,)`; the sums have its precision.
        dtype: of the result.

    Returns:
        `(rows,)` and `(rows, columns)`.
    """
    rows = plan["rows"].to(probabilities.dtype) * probabilities.unsqueeze(1)
    entries = rows.t() @ plan["columns"].to(probabilities.dtype)
    return rows.sum(0).to(dtype), entries.to(dtype)


def bias_of(layer: nn.Module) -> Tensor | None:
    """Return the bias of a layer, None without one; torch types it as always present."""
    bias: Tensor | None = layer.bias  # type: ignore[assignment]  # a parameter or None
    return bias


def _sliced_bias(layer: nn.Module, rows: int) -> dict[str, Tensor]:
    """Return the first entries of the bias by its name; nothing without a bias."""
    bias = bias_of(layer)
    return {} if bias is None else {"bias": bias[:rows]}


def pair(value: int | Sequence[int]) -> Pair:
    """Return height and width of a convolution's argument; one integer stands for both."""
    if isinstance(value, int):
        return value, value
    high, wide = value
    return high, wide


def shape_of(value: int | Sequence[int]) -> tuple[int, ...]:
    """Return a normalized shape as a tuple, an integer as one of length 1."""
    return (value,) if isinstance(value, int) else tuple(value)


def group_width(arguments: Arguments) -> int:
    """Return the number of input channels in each group of a convolution."""
    width: int = arguments["in_channels"] // arguments.get("groups", 1)
    return width


def convolve(features: Tensor, weight: Tensor, bias: Tensor | None, arguments: Arguments) -> Tensor:
    """Return the convolution that a `Conv2d` of these arguments computes.

    Args:
        features: `(batch, channels, height, width)`.
        weight: `(filters, channels per group, kernel height, kernel width)`.
        bias: `(filters,)` or None.
        arguments: arguments of the layer.

    Returns:
        `(batch, filters, height, width)`.
    """
    padding = arguments.get("padding", 0)
    mode = arguments.get("padding_mode", "zeros")
    dilation = pair(arguments.get("dilation", 1))
    if mode != "zeros":
        high, wide = _padding(arguments)
        features = functional.pad(features, (wide, wide, high, high), mode=mode)
        padding = 0
    elif not isinstance(padding, str):
        padding = pair(padding)
    return functional.conv2d(
        features,
        weight,
        bias,
        pair(arguments.get("stride", 1)),
        padding,
        dilation,
        arguments.get("groups", 1),
    )


def _padding(arguments: Arguments) -> Pair:
    """Return the padding on each side of height and width; `same` with even kernels rounds down."""
    padding = arguments.get("padding", 0)
    if not isinstance(padding, str):
        return pair(padding)
    if padding == "valid":
        return 0, 0
    kernel, dilation = pair(arguments["kernel_size"]), pair(arguments.get("dilation", 1))
    return dilation[0] * (kernel[0] - 1) // 2, dilation[1] * (kernel[1] - 1) // 2


def _window(arguments: Arguments, high: int, wide: int) -> Tensor:
    """Return a mask `(high, wide)`, 1 at the centred positions of the kernel of an option."""
    kernel = pair(arguments["kernel_size"])
    top, left = (high - kernel[0]) // 2, (wide - kernel[1]) // 2
    window = torch.zeros(high, wide)
    window[top : top + kernel[0], left : left + kernel[1]] = 1
    return window


def _widest(options: Sequence[Arguments]) -> Arguments:
    """Return arguments of one convolution for all options: the largest kernel, the most groups."""
    kernel = max(options, key=lambda option: pair(option["kernel_size"]))
    groups = max(option.get("groups", 1) for option in options)
    return {**kernel, "groups": groups}


def _check_alignment(storage: nn.Conv2d, options: Sequence[Arguments]) -> None:
    """Raise ValueError unless one convolution with masked kernels computes every option."""
    high, wide = storage.weight.shape[2:]
    aligned = {
        (
            pair(option.get("stride", 1)),
            pair(option.get("dilation", 1)),
            _excess(option, high, wide),
            tuple(size % 2 for size in pair(option["kernel_size"])),
            option["out_channels"] / option["in_channels"] if option.get("groups", 1) > 1 else 0,
            group_width(option) if option.get("groups", 1) > 1 else 0,
        )
        for option in options
    }
    if len(aligned) > 1:
        raise ValueError(
            "options of a differentiable Conv2d must have one stride, one dilation, padding that "
            "keeps the size of the output (such as kernel_size // 2) and groups of one size, got "
            f"{[dict(option) for option in options]}; use a LayerChoice of convolutions instead"
        )


def _excess(arguments: Arguments, high: int, wide: int) -> Pair:
    """Return the padding that the largest kernel would need to give the output of an option."""
    kernel, padding = pair(arguments["kernel_size"]), _padding(arguments)
    dilation = pair(arguments.get("dilation", 1))
    return (
        padding[0] + dilation[0] * ((high - kernel[0]) // 2),
        padding[1] + dilation[1] * ((wide - kernel[1]) // 2),
    )
