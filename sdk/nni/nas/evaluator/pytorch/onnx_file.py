"""File in ONNX of a network that is evaluated, for viewers such as Netron."""

import contextlib
import io
import logging
import os
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

_NAME = "model.onnx"
_FOLDER = "NNI_OUTPUT_DIR"


def output_path(export_onnx: bool | str | Path | None) -> Path | None:  # noqa: FBT001 - as documented
    """Return the ONNX file's path: the given one, a default one for True, else None.

    Args:
        export_onnx: true for `model.onnx` in the folder of the trial, or in the current folder
            outside a trial; or a path.
    """
    if export_onnx is None or export_onnx is False:
        return None
    if export_onnx is True:
        return Path(os.environ.get(_FOLDER, ".")) / _NAME
    return Path(export_onnx)


def export_network(model: nn.Module, inputs: Tensor, path: Path) -> None:
    """Write a network, in eval mode, to an ONNX file; warn if that fails.

    Args:
        model: network; its modes are as before afterwards.
        inputs: example batch.
        path: the file; its folder is made.
    """
    modes = [(module, module.training) for module in model.modules()]
    level = logging.getLogger("torch.onnx").level
    try:
        model.eval()
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(action="ignore"),
        ):
            program = torch.onnx.export(model, (inputs.detach(),), dynamo=True, verbose=False)
            assert program is not None
            path.parent.mkdir(parents=True, exist_ok=True)
            program.save(str(path), external_data=False)
    except Exception as error:  # noqa: BLE001 - the file is an extra: the training goes on
        warnings.warn(
            f"the network could not be written to {path.name} in ONNX: {type(error).__name__}: "
            f"{error}",
            RuntimeWarning,
            stacklevel=2,
        )
    finally:
        logging.getLogger("torch.onnx").setLevel(level)
        for module, training in modes:
            module.training = training
