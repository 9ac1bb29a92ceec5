"""Counter of floating-point operations and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.pooling import _AdaptiveAvgPoolNd, _AvgPoolNd

from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.running import run, tensors_in, unchanged

Count = dict[str, Any]
CustomOps = Mapping[type[nn.Module], Callable[[nn.Module, Any, Any], Mapping[str, Any]]]
MODES = ("default", "full")
_MATRIX = 2
_GATES = {"LSTM": 4, "LSTMCell": 4, "GRU": 3, "GRUCell": 3}


def _size(output: object) -> tuple[int, ...]:
    found = tensors_in(output)
    return tuple(found[0].shape) if found else ()


def _convolution(module: _ConvNd, output: Tensor, *, full: bool) -> int:
    filters = int(module.weight.flatten(1).any(dim=1).sum())
    width = module.weight.shape[1]
    if isinstance(module, _ConvTransposeNd):
        filters, width = module.out_channels, module.in_channels // module.groups
    places = math.prod(output.shape[2:])
    per_place = math.prod(module.kernel_size) * width
    bias = 1 if full and module.bias is not None else 0
    return filters * places * (per_place + bias)


def _linear(module: nn.Linear, output: Tensor, *, full: bool) -> int:
    rows = int(module.weight.any(dim=1).sum())
    bias = 1 if full and module.bias is not None else 0
    return math.prod(output.shape[1:-1]) * rows * (module.in_features + bias)


def _cell(inputs: int, hidden: int, gates: int, *, bias: bool) -> int:
    once = hidden * (inputs + hidden) + hidden + (2 * hidden if bias else 0)
    return once if gates == 1 else gates * once + 4 * hidden


def _recurrent(module: nn.RNNBase, source: Tensor, *, full: bool) -> int:
    batched = source.dim() > _MATRIX  # a matrix is one sequence, (length, features)
    steps = source.shape[1 if batched and module.batch_first else 0]
    directions = 2 if module.bidirectional else 1
    gates = _GATES.get(module.mode, 1)
    found = 0
    for layer in range(module.num_layers):
        width = module.input_size if layer == 0 else module.hidden_size * directions
        cell = _cell(width, module.hidden_size, gates, bias=full and module.bias)
        found += directions * steps * cell
    return found


@dataclass
class _Counter:
    """Forward hooks that count operations and parameters of each call of a layer."""

    custom: CustomOps
    full: bool
    results: list[Count] = field(default_factory=list)
    counted: set[int] = field(default_factory=set)

    def hook(self, name: str, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ANN401
        """Append operations and parameters of one call, if layers of its kind are counted."""
        weight = getattr(module, "weight", None)
        shape = tuple(weight.shape) if isinstance(weight, Tensor) else None
        own = next((func for kind, func in self.custom.items() if type(module) is kind), None)
        if own is not None:
            found = dict(own(module, inputs, output))
        else:
            flops = self._flops(module, tensors_in(inputs), tensors_in(output))
            if flops is None:
                return
            params = sum(one.numel() for one in module.parameters())
            found = {"flops": flops, "params": params, "weight_shape": shape}
        if id(module) in self.counted:
            found["params"] = 0  # parameters of a shared module count once
        self.counted.add(id(module))
        self.results.append({
            "name": name, "module_type": type(module).__name__, "weight_shape": shape, **found,
            "input_size": _size(inputs), "output_size": _size(output),
        })  # fmt: skip

    def _flops(self, module: nn.Module, inputs: list[Tensor], outputs: list[Tensor]) -> int | None:
        """Return the operations of a layer per sample; None if it is not counted."""
        if isinstance(module, _ConvNd):
            return _convolution(module, outputs[0], full=self.full)
        if isinstance(module, nn.Linear):
            return _linear(module, outputs[0], full=self.full)
        if isinstance(module, nn.RNNBase):
            return _recurrent(module, inputs[0], full=self.full)
        if isinstance(module, nn.RNNCellBase):
            gates = _GATES.get(type(module).__name__, 1)
            bias = self.full and module.bias
            return _cell(module.input_size, module.hidden_size, gates, bias=bias)
        if not self.full:
            return None
        elements = math.prod(inputs[0].shape[1:]) if inputs else 0
        if isinstance(module, _BatchNorm):
            return 2 * elements
        if isinstance(module, nn.LeakyReLU):
            return elements
        if isinstance(module, _AvgPoolNd | _AdaptiveAvgPoolNd | nn.Upsample):
            return math.prod(outputs[0].shape[1:])
        return None


def count_flops_params(
    model: nn.Module,
    x: Inputs | tuple[int, ...],
    custom_ops: CustomOps | None = None,
    verbose: bool = True,  # noqa: FBT001, FBT002 - the signature of NNI
    mode: str = "default",
) -> tuple[int, int, list[Count]]:
    """Return operations of one sample, number of parameters, counts by layer; print if `verbose`.

    A multiplication with an addition is one operation. Of a masked layer the rows and filters that
    are not all zero count.

    Args:
        model: The model; it runs once in eval mode and is the same afterwards.
        x: Inputs, or the shape of one input.
        custom_ops: Function of module, inputs and output by class of the module; it returns a dict
            with `flops`, `params` and `weight_shape`.
        verbose: Whether to print a table.
        mode: `default` counts convolutions, linear and recurrent layers without bias; `full` also
            bias, batch norms, leaky ReLU, average pools and upsampling.

    Returns:
        Operations, parameters, and one dict for each call of a layer.

    Raises:
        AssertionError: `mode` is neither `default` nor `full`.

    Examples:
        >>> import torch
        >>> from nni.compression.utils import count_flops_params
        >>> layer = torch.nn.Conv2d(3, 5, 1)
        >>> count_flops_params(layer, (1, 3, 2, 2), verbose=False)[:2]
        (60, 20)
    """
    if mode not in MODES:
        raise AssertionError(f"mode must be one of {MODES}, but is {mode!r}")
    shape = isinstance(x, tuple) and all(isinstance(one, int) for one in x)
    device = next((one.device for one in model.parameters()), torch.device("cpu"))
    inputs: Any = torch.randn(x, device=device) if shape else x  # type: ignore[arg-type]
    counter = _Counter(custom_ops or {}, mode == "full")
    handles = []
    for name, module in model.named_modules():
        leaf = not any(True for _ in module.children()) or type(module) in counter.custom
        if leaf:
            handles.append(module.register_forward_hook(_bound(counter, name)))
    try:
        with unchanged(model):
            run(model, inputs)
    finally:
        for handle in handles:
            handle.remove()
    flops = sum(one["flops"] for one in counter.results)
    params = sum(one["params"] for one in counter.results)
    if verbose:
        print(table(counter.results, flops, params))  # noqa: T201 - what `verbose` asks for
    return flops, params, counter.results


def _bound(counter: _Counter, name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
    return lambda module, inputs, output: counter.hook(name, module, inputs, output)


def table(results: list[Count], flops: int, params: int) -> str:
    """Return the counts as text with one line per call."""
    rows = [("name", "type", "weight", "flops", "params")]
    rows += [
        (one["name"], one["module_type"], str(one["weight_shape"]), str(one["flops"]),
         str(one["params"]))
        for one in results
    ]  # fmt: skip
    rows.append(("total", "", "", str(flops), str(params)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines)
