"""Configurations of quantizers by runtime: which tensors a runtime wants as integers, and how."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

import torch
from torch import nn
from torch.fx import Node

from nni.compression.base.model_runs import eval_mode

Runtime = Literal["onnxruntime", "openvino"]
"""Programs that execute quantized models."""
RUNTIMES: Final[tuple[Runtime, ...]] = get_args(Runtime)


@dataclass(frozen=True, slots=True)
class RuntimePreset:
    """Layers and settings of tensors for which a runtime has integer kernels."""

    layers: tuple[str, ...]
    """Class names of modules of which input and weight are integers."""
    readers: tuple[str, ...]
    """Class names of modules of which the input is integers."""
    weight: Mapping[str, object]
    """Settings of weights."""
    activation: Mapping[str, object]
    """Settings of inputs and outputs."""


_WEIGHT: Final = {"quant_dtype": "int8", "quant_scheme": "symmetric", "granularity": "out_channel"}
_ACTIVATION: Final = {"quant_dtype": "uint8", "quant_scheme": "affine"}
_USUAL: Final = RuntimePreset(
    layers=("Conv1d", "Conv2d", "Linear"),
    readers=("AdaptiveAvgPool2d", "AvgPool2d"),
    weight=_WEIGHT,
    activation=_ACTIVATION,
)
PRESETS: Final[Mapping[Runtime, RuntimePreset]] = {"onnxruntime": _USUAL, "openvino": _USUAL}
"""What each runtime wants."""

_CONVOLUTIONS: Final = ("conv1d", "conv2d")
_ACTIVATIONS: Final = ("relu", "relu6", "hardtanh", "clamp")
_ACTIVATION_MODULES: Final = "torch.nn.modules.activation."
_MOVING: Final = ("max_pool2d", "flatten", "view", "reshape", "permute", "transpose", "dropout")


def config_list_for(
    runtime: Runtime, model: nn.Module, example_inputs: tuple[object, ...]
) -> list[dict[str, object]]:
    """Return a `config_list` with which a runtime computes a model in integers.

    Weights are int8 with a scale for each output channel; activations are uint8 with a scale and a
    zero point. Inputs of layers are integers, and outputs of convolutions that no layer reads, such
    as those that are added. A batch norm after a convolution is to be folded: give `dummy_input` to
    the quantizer.

    Args:
        runtime: `onnxruntime` or `openvino`.
        model: an unwrapped model, which `torch.export` can trace.
        example_inputs: positional arguments of a call.

    Returns:
        A list for any quantizer of 8 bits.

    Raises:
        TypeError: `example_inputs` is no tuple.
        ValueError: the runtime is unknown.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization.presets import config_list_for
        >>> model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        >>> config_list = config_list_for("onnxruntime", model, (torch.zeros(1, 1, 8, 8),))
        >>> [(entry["op_names"], entry["target_names"]) for entry in config_list]
        [(['0'], ['_input_', 'weight']), (['2'], ['_output_'])]
    """
    check_runtime(runtime)
    if not isinstance(example_inputs, tuple):
        raise TypeError(
            f"example_inputs must be a tuple of arguments, got {type(example_inputs).__name__}; "
            "write (tensor,)"
        )
    preset = PRESETS[runtime]
    types = {name: type(module).__name__ for name, module in model.named_modules()}
    layers = [name for name, kind in types.items() if kind in preset.layers]
    readers = [name for name, kind in types.items() if kind in preset.readers]
    with eval_mode(model), torch.no_grad():
        graph = torch.export.export(model, example_inputs, strict=False).graph
    outputs = _unread_outputs(list(graph.nodes), {*layers, *readers})
    activation = dict(preset.activation)
    entries: list[dict[str, object]] = [
        {
            "op_names": layers,
            "target_names": ["_input_", "weight"],
            "target_settings": {"_input_": activation, "weight": dict(preset.weight)},
        },
        {"op_names": readers, "target_names": ["_input_"], **activation},
        {"op_names": outputs, "target_names": ["_output_"], **activation},
    ]
    return [entry for entry in entries if entry["op_names"]]


def check_runtime(runtime: object) -> None:
    """Raise ValueError unless a runtime is known.

    Args:
        runtime: what the user wrote.

    Raises:
        ValueError: it is not.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime must be one of {', '.join(RUNTIMES)}, got {runtime!r}")


def _unread_outputs(nodes: list[Node], reading: set[str]) -> list[str]:
    """Return names of convolutions, or of their activations, whose output `reading` does not read.

    These are convolutions whose output no module in `reading` gets, directly, after an activation
    or after an operation that moves values; the activation, if it is a module that runs once.
    """
    runs = [_module(node) for node in nodes if _operator(node) in _ACTIVATIONS]
    found = []
    for node in nodes:
        if _operator(node) not in _CONVOLUTIONS:
            continue
        last = _last_of_layer(node)
        if _is_read(last, reading):
            continue
        name = _module(last)
        own = _operator(last) in _ACTIVATIONS and runs.count(name) == 1 and _is_activation(last)
        found.append(name if own else _module(node))
    return list(dict.fromkeys(name for name in found if name))


def _last_of_layer(node: Node) -> Node:
    """Return the last operation that a runtime computes together with a convolution."""
    for operators in (("batch_norm",), _ACTIVATIONS):
        users = list(node.users)
        if len(users) == 1 and _operator(users[0]) in operators:
            node = users[0]
    return node


def _is_read(node: Node, reading: set[str]) -> bool:
    """Return whether a module in `reading` gets the output of an operation."""
    for user in node.users:
        if _operator(user) in _MOVING:
            if _is_read(user, reading):
                return True
        elif _module(user) in reading:
            return True
    return False


def _is_activation(node: Node) -> bool:
    """Return whether an activation module of torch computes an operation."""
    return _module_type(node).startswith(_ACTIVATION_MODULES)


def _module(node: Node) -> str:
    """Return the dotted name of the module that computes an operation."""
    return next((name for name, _ in reversed(_stack(node))), "")


def _module_type(node: Node) -> str:
    return next((kind for _, kind in reversed(_stack(node))), "")


def _stack(node: Node) -> list[tuple[str, str]]:
    found: Iterator[tuple[str, object]] = iter(node.meta.get("nn_module_stack", {}).values())
    return [(name, str(kind)) for name, kind in found]


def _operator(node: Node) -> str:
    """Return the name of an operation of ATen, without what says that it works in place."""
    packet = getattr(node.target, "overloadpacket", None)
    return "" if packet is None else str(packet).rpartition(".")[2].rstrip("_")
