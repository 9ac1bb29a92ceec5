"""Target spaces: the tensors of a module that are masked or quantized, and their replacement."""

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import torch
from torch import Tensor, nn

from nni.compression.config.settings import ApplyMethod

INPUT: Final = "_input_"
OUTPUT: Final = "_output_"
_ADDED: Final = -1000.0
"""Added where `apply_method` is `add`: a softmax of it is 0 in float32, and float16 can hold it."""


Change = Callable[[Tensor], Tensor]
"""Function of one tensor that is called in its place."""


def is_parameter(target: str) -> bool:
    """Return whether a target name means a parameter, not an input or output."""
    return not target.startswith((INPUT, OUTPUT))


def masked(tensor: Tensor, mask: Tensor, method: ApplyMethod) -> Tensor:
    """Return a tensor times a mask (`mul`), less 1000 where it is 0 (`add`), or as is (`bypass`).

    Under `mul` no gradient passes where the mask is 0.

    Args:
        tensor: any shape.
        mask: 0 or 1, of a shape that broadcasts to that of `tensor`.
        method: see `PruningSettings.apply_method`.

    Returns:
        A new tensor of the shape and dtype of `tensor`; under `bypass` the tensor itself.

    Examples:
        >>> masked(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 1.0]), "mul")
        tensor([0., 2.])
    """
    match method:
        case "mul":
            return tensor * mask.to(tensor.dtype)
        case "add":
            return tensor + (1 - mask.to(tensor.dtype)) * _ADDED
        case "bypass":
            return tensor


def changed_inputs(
    module: nn.Module,
    changes: Mapping[str, Change],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call's arguments, given ones replaced by functions of them; raise if one is missing.

    Args:
        module: the module that is called; its `forward` names the arguments.
        changes: function by name after `_input_`: a position, an argument's name, or empty for
            the first one.
        args: positional arguments.
        kwargs: named arguments.

    Returns:
        Positional and named arguments.

    Raises:
        TypeError: the argument is no tensor.
        ValueError: the call has no such argument.
    """
    positional = list(args)
    named = dict(kwargs)
    for key, change in changes.items():
        place = _place_of(module, key, len(positional), named)
        values = cast("dict[int | str, Any]", positional if isinstance(place, int) else named)
        values[place] = change(_tensor(values[place], f"{INPUT}{key}"))
    return tuple(positional), named


def changed_outputs(
    output: Any,  # noqa: ANN401 - what a module returns
    changes: Mapping[str, Change],
) -> Any:  # noqa: ANN401
    """Return an output, given parts replaced by functions of them; raise if one is missing.

    Args:
        output: a tensor, tuple, list or dict.
        changes: function by name after `_output_`: a position, a key, or empty for 0.

    Returns:
        The output in its own type.

    Raises:
        TypeError: the part is no tensor.
        ValueError: the output has no such part.
    """
    for key, change in changes.items():
        if isinstance(output, Tensor):
            if key not in {"", "0"}:
                raise ValueError(f"{OUTPUT}{key} does not exist: the output is one tensor")
            output = change(output)
        elif isinstance(output, dict):
            output = _with_entry(output, key, change)
        elif isinstance(output, tuple | list):
            output = _with_part(output, key, change)
        else:
            raise TypeError(f"{OUTPUT}{key} does not exist: the output is {type(output)}")
    return output


def first_output(output: object) -> Tensor:
    """Return the tensor that `_output_` means: the output, or its first item; raise if no tensor.

    Args:
        output: what a module returned.

    Raises:
        TypeError: there is no tensor.
    """
    if isinstance(output, tuple | list) and output:
        output = output[0]
    elif isinstance(output, dict) and output:
        output = next(iter(output.values()))
    return _tensor(output, f"{OUTPUT}0")


def _with_entry(output: dict[str, Any], key: str, change: Change) -> dict[str, Any]:
    """Return a copy of a dict output, such as one of transformers, with one entry changed."""
    name = next(iter(output), "") if key in {"", "0"} and key not in output else key
    changed = copy.copy(output)
    changed[name] = change(_tensor(output.get(name), OUTPUT + key))
    return changed


def _with_part(
    output: tuple[Any, ...] | list[Any], key: str, change: Change
) -> tuple[Any, ...] | list[Any]:
    index = int(key or 0) if (key or "0").isdigit() else len(output)
    if index >= len(output):
        raise ValueError(f"{OUTPUT}{key} does not exist: the output has {len(output)} parts")
    parts = list(output)
    parts[index] = change(_tensor(parts[index], OUTPUT + key))
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return type(output)(*parts)
    return type(output)(parts)


def _place_of(
    module: nn.Module, key: str, positional: int, named: Mapping[str, object]
) -> int | str:
    """Return position or name of an argument in a call; raise ValueError if the call lacks it."""
    if key in named:
        return key
    if (key or "0").isdigit():
        place = int(key or 0)
    else:
        names = list(inspect.signature(module.forward).parameters)
        place = names.index(key) if key in names else positional
    if place >= positional:
        raise ValueError(
            f"{INPUT}{key} is no argument of the call of {type(module).__name__}, which has "
            f"{positional} positional and the named {sorted(named)}"
        )
    return place


def _tensor(value: object, name: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    return value


def is_mask(mask: Tensor) -> bool:
    """Return whether a tensor holds only 0 and 1."""
    return bool(torch.all((mask == 0) | (mask == 1)))
