"""Parameters of a model without wrappers, with zeros where masks are, and files of them."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.base.onnx_export import check_onnx_arguments, export_onnx
from nni.compression.base.target_space import is_parameter

LayerMasks = Mapping[str, Mapping[str, Tensor | None]]


def masked_state(model: nn.Module, masks: LayerMasks) -> dict[str, Tensor]:
    """Return a copy of an unwrapped model's state dict, with masked values of parameters zero.

    A parameter that modules share has several names; all of them hold the masked values.

    Args:
        model: the model, which is not changed.
        masks: masks by module and target name; None and those of inputs and outputs change nothing.

    Returns:
        Copies of the tensors, by the names of the original model.

    Raises:
        KeyError: a mask is of a parameter that the model lacks.

    Examples:
        >>> import torch
        >>> model = nn.Sequential(nn.Linear(1, 2, bias=False))
        >>> model[0].weight.data.fill_(3)
        tensor([[3.],
                [3.]])
        >>> masked_state(model, {"0": {"weight": torch.tensor([[0.0], [1.0]])}})["0.weight"]
        tensor([[0.],
                [3.]])
    """
    tensors = model.state_dict(keep_vars=True)
    state = {key: value.detach().clone() for key, value in tensors.items()}
    names: dict[int, list[str]] = {}
    for key, tensor in tensors.items():
        names.setdefault(id(tensor), []).append(key)
    for name, targets in masks.items():
        for target, mask in targets.items():
            if mask is not None and is_parameter(target):
                for key in names[id(tensors[f"{name}.{target}"])]:
                    state[key] *= mask.to(state[key])
    return state


def export_masked(  # noqa: PLR0913 - the documented arguments of `export_model`
    model: nn.Module,
    masks: LayerMasks,
    model_path: str | Path,
    mask_path: str | Path | None = None,
    onnx_path: str | Path | None = None,
    input_shape: Sequence[int] | None = None,
    device: torch.device | str | None = None,
    dummy_input: object = None,
    opset_version: int | None = None,
) -> None:
    """Write a masked state dict; masks and ONNX if paths are given; the model is not changed.

    Args:
        model: the model without wrappers.
        masks: masks by module and target name.
        model_path: file of the state dict, with masked values zero.
        mask_path: file of the masks; None for no file.
        onnx_path: file of the masked model in ONNX; None for no file.
        input_shape: shape of its input, if there is no `dummy_input`.
        device: device of the model, for `input_shape`; None for the CPU.
        dummy_input: inputs of the model: a tensor, a list or tuple, or a dict by name.
        opset_version: version of the operators of ONNX; None for the default of torch.

    Raises:
        TypeError: `model_path` is None.
        ValueError: `onnx_path` is given without inputs or their shape; nothing is written then.
        ImportError: a package for `onnx_path` is missing; nothing is written then.
    """
    if model_path is None:
        raise TypeError("model_path must be the path of a file, got None")
    check_onnx_arguments(onnx_path, input_shape if dummy_input is None else ())
    state = masked_state(model, masks)
    torch.save(state, model_path)
    if mask_path is not None:
        torch.save(masks, mask_path)
    if onnx_path is None:
        return
    if dummy_input is None:
        dummy_input = torch.zeros(*(input_shape or ()), device=torch.device(device or "cpu"))
    masked = copy.deepcopy(model)
    masked.load_state_dict(state)
    options: dict[str, Any] = {} if opset_version is None else {"opset_version": opset_version}
    if isinstance(dummy_input, Mapping):
        options["kwargs"] = dict(dummy_input)
        dummy_input = ()
    positional = tuple(dummy_input) if isinstance(dummy_input, list | tuple) else (dummy_input,)
    export_onnx(masked, positional, onnx_path, **options)
