"""Replacement of simulated integers by operators of a file, while a model is exported."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.base.model_runs import eval_mode
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.onnx_export import onnx_program
from nni.compression.base.target_quantizer import TargetQuantizer
from nni.compression.quantization.qdq.targets import exported_activation, exported_parameter

_QUANTIZERS = "quantizers"


def _unchanged(module: nn.Module) -> nn.Module:
    return module


def export_wrapped(
    model: nn.Module,
    example_inputs: object,
    path: str | Path,
    *,
    runtime: str | None = "onnxruntime",
    dynamic_batch: bool = False,
) -> None:
    """Write a wrapped model in ONNX, with pairs of QuantizeLinear and DequantizeLinear.

    Args:
        model: a model with wrappers; as before afterwards.
        example_inputs: the only argument of a call, a tuple of positional ones, or a dict of named
            ones.
        path: the file; weights are inside it.
        runtime: see `place_pairs`; None: pairs stand only where the simulation rounds.
        dynamic_batch: whether the first dimension of all inputs may have any size.

    Raises:
        ImportError: a package is missing.
    """
    options: dict[str, Any] = {}
    if dynamic_batch:
        example_inputs = _map(example_inputs, _at_least_two)
        options["dynamic_shapes"] = _map(example_inputs, _any_batch)
        if isinstance(example_inputs, Tensor):
            options["dynamic_shapes"] = (options["dynamic_shapes"],)
    if isinstance(example_inputs, dict):
        options["kwargs"], example_inputs = example_inputs, ()
    arguments = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    with exported_quantizers(model):
        program = onnx_program(model, arguments, **options)
    # Its imports are optional dependencies, and onnx_program has checked that they are there.
    from nni.compression.quantization.qdq.placement import place_pairs

    place_pairs(program.model, runtime=runtime is not None)
    program.save(str(path), external_data=False)


def _map(inputs: object, change: Any) -> object:  # noqa: ANN401 - a function of an argument
    if isinstance(inputs, tuple):
        return tuple(change(one) for one in inputs)
    if isinstance(inputs, dict):
        return {name: change(one) for name, one in inputs.items()}
    return change(inputs)


def _at_least_two(value: object) -> object:
    """Return a batch of one doubled, as torch takes a size of 1 for a constant; others as is."""
    if isinstance(value, Tensor) and value.dim() and value.shape[0] == 1:
        return torch.cat([value, value])
    return value


def _any_batch(value: object) -> object:
    batched = isinstance(value, Tensor) and value.dim()
    return {0: torch.export.Dim("batch")} if batched else None


@contextmanager
def exported_quantizers(
    model: nn.Module, convert: Callable[[nn.Module], nn.Module] = _unchanged
) -> Iterator[None]:
    """Let a wrapped model compute with operators of an exported file for a `with` block.

    Those of ONNX compute nothing in torch: values have no meaning meanwhile.

    Args:
        model: a model with wrappers; afterwards it is as before.
        convert: returns the module that stands for one of ONNX; by default that one.

    Yields:
        Nothing.
    """
    wrappers = {id(one): one for one in model.modules() if isinstance(one, ModuleWrapper)}
    with eval_mode(model), torch.no_grad():
        replaced = {key: exported_targets(one) for key, one in wrappers.items() if one.quantizers}
    before = {key: wrappers[key].quantizers for key in replaced}
    try:
        for key, targets in replaced.items():
            converted = {name: convert(module) for name, module in targets.items()}
            setattr(wrappers[key], _QUANTIZERS, nn.ModuleDict(converted))
        yield
    finally:
        for key, quantizers in before.items():
            setattr(wrappers[key], _QUANTIZERS, quantizers)


def exported_targets(wrapper: ModuleWrapper) -> Mapping[str, nn.Module]:
    """Return the ONNX modules that replace a wrapper's quantizers in an export, by target.

    Args:
        wrapper: in eval mode.

    Returns:
        By target name; targets that are left as they are do not occur.
    """
    values = wrapper.effective_parameters()
    found = {}
    for target, quantizer in wrapper.quantizers.items():
        assert isinstance(quantizer, TargetQuantizer)  # wrappers hold no other
        if quantizer.place.is_parameter:
            made = exported_parameter(quantizer, values[target])
        else:
            made = exported_activation(quantizer)
        if made is not None:
            found[target] = made
    return found
