"""Export of a quantized model in the form of PT2E, which `torch.compile` computes in integers."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from nni.compression.base.model_runs import eval_mode
from nni.compression.quantization.qdq.decomposed import decomposed, load_operators
from nni.compression.quantization.qdq.exported_model import Inputs, wrapped_model
from nni.compression.quantization.qdq.simulation import exported_quantizers
from nni.compression.quantization.quantizer import Quantizer


def export_pt2e(
    model: nn.Module,
    calibration: Quantizer | Mapping[str, Mapping[str, object]],
    example_inputs: Inputs,
    *,
    fold_batch_norms: bool = False,
) -> ExportedProgram:
    """Export a quantized model with the quantizing operators of PT2E, for `torch.compile`.

    Weights are stored as integers of 8 bits. Targets that are no such integers are computed in
    floating point as the simulation does, and logged as warnings. `torch.export.save` writes the
    program to a file, and `torch.export.load` reads it where `nni` is not installed.

    Args:
        model: the model that `calibration` quantizes, or an unwrapped one that it describes; as
            before afterwards.
        calibration: the quantizer, or what `get_calibration_config` or `export_model` returned, in
            the form of NNI 3.0 or 2.x.
        example_inputs: the only argument of a call, a tuple of positional arguments, or a dict of
            named ones. Calls have these shapes.
        fold_batch_norms: whether a calibration configuration describes layers with the batch norm
            after them folded in; without effect if `calibration` is a quantizer, which knows.

    Returns:
        The program; `compile_pt2e` makes a function of it.

    Raises:
        TypeError: `calibration` or `example_inputs` is something else.
        ValueError: the model has wrappers and should have none, or the reverse.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import NaiveQuantizer, export_pt2e
        >>> model = nn.Sequential(nn.Linear(4, 2))
        >>> quantizer = NaiveQuantizer(model)
        >>> program = export_pt2e(model, quantizer, torch.zeros(1, 4))
        >>> program.module()(torch.zeros(1, 4)).shape
        torch.Size([1, 2])
    """
    load_operators()
    positional, named = _arguments(example_inputs)
    with (
        wrapped_model(model, calibration, example_inputs, fold_batch_norms=fold_batch_norms),
        exported_quantizers(model, decomposed),
        eval_mode(model),
        torch.no_grad(),
    ):
        return torch.export.export(model, positional, named, strict=False)


def compile_pt2e(program: ExportedProgram) -> Callable[..., Any]:
    """Return a function that runs a program on the CPU in integers; its first call compiles.

    The compiler needs a C++ compiler on the machine. The first call compiles, which takes seconds
    to minutes. Integers are fast on x86 processors with VNNI or AMX; gradients are not computed.

    Args:
        program: what `export_pt2e` returned, or `torch.export.load`.

    Returns:
        A function with the arguments and the result of the model.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import NaiveQuantizer, compile_pt2e, export_pt2e
        >>> model = nn.Sequential(nn.Linear(4, 2))
        >>> program = export_pt2e(model, NaiveQuantizer(model), torch.zeros(1, 4))
        >>> compiled = compile_pt2e(program)  # compiled(torch.zeros(1, 4)) compiles
    """
    load_operators()
    module = program.module()

    @functools.cache
    def compiled() -> Callable[..., Any]:
        function: Callable[..., Any] = torch.compile(module)  # imports the compiler: seconds
        return function

    def run(*positional: object, **named: object) -> object:
        function = compiled()
        from torch._inductor import config  # imported by torch.compile

        # An option of torch.compile would not reach the tracing, which has to freeze weights, too.
        with torch.no_grad(), config.patch(freezing=True):
            return function(*positional, **named)

    return run


def _arguments(example_inputs: Inputs) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the positional and named arguments of a call."""
    if isinstance(example_inputs, dict):
        return (), example_inputs
    if isinstance(example_inputs, Tensor):
        return (example_inputs,), {}
    return example_inputs, {}
