"""Export of a model to a file in ONNX."""

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nni.compression.base.model_runs import eval_mode

_NEEDED = ("onnx", "onnxscript")
_RUNTIME = "onnxruntime"


def check_onnx_arguments(onnx_path: str | Path | None, input_shape: Sequence[int] | None) -> None:
    """Raise if a path is given, but no input shape, or if packages for ONNX are missing.

    Args:
        onnx_path: the file; None if none is wanted.
        input_shape: shape of the input of the model.

    Raises:
        ImportError: a package is missing.
        ValueError: there is no shape.
    """
    if onnx_path is None:
        return
    if input_shape is None:
        raise ValueError("onnx_path needs input_shape, such as [1, 3, 224, 224]; give both")
    check_onnx_packages()


def check_onnx_packages(*, with_runtime: bool = False) -> None:
    """Raise ImportError unless the packages that the export to ONNX needs are installed.

    Args:
        with_runtime: whether the file is executed as well.

    Raises:
        ImportError: a package is missing.
    """
    needed = (*_NEEDED, _RUNTIME) if with_runtime else _NEEDED
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"export to ONNX needs {missing[0]}; run: pip install 'nni[onnx]'")


def export_onnx(
    model: nn.Module,
    example_inputs: tuple[Any, ...],
    path: str | Path,
    **options: Any,  # noqa: ANN401 - those of torch.onnx.export
) -> None:
    """Write a model to a file in ONNX, in eval mode.

    Args:
        model: the model; its modes are as before afterwards.
        example_inputs: positional arguments of a call.
        path: the file; weights are inside it.
        options: further arguments of `torch.onnx.export`.

    Raises:
        ImportError: a package is missing.
    """
    onnx_program(model, example_inputs, **options).save(str(path), external_data=False)


def onnx_program(
    model: nn.Module,
    example_inputs: tuple[Any, ...],
    **options: Any,  # noqa: ANN401 - those of torch.onnx.export
) -> torch.onnx.ONNXProgram:
    """Export a model in eval mode; return the ONNX program; silence warnings and messages.

    Args:
        model: the model; its modes are as before afterwards.
        example_inputs: positional arguments of a call.
        options: further arguments of `torch.onnx.export`.

    Raises:
        ImportError: a package is missing.
    """
    check_onnx_packages()
    noise = logging.getLogger("torch.onnx")
    level = noise.level
    with eval_mode(model), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about itself
        noise.setLevel(logging.ERROR)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                program = torch.onnx.export(
                    model, example_inputs, **{"dynamo": True, "verbose": False, **options}
                )
        finally:
            noise.setLevel(level)
    assert program is not None  # dynamo returns one
    return program
