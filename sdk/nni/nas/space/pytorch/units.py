"""Modules as one node: their class, and the arguments that construct them again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn

from nni.common.serializer import is_traceable
from nni.nas.space.graph import IllegalGraphError
from nni.nas.space.graph_op import MODULE_PREFIX, POSITIONAL, Operation
from nni.nas.utils.importable_names import get_importable_name
from nni.nas.utils.markers import is_basic_unit

CONTAINERS: Final = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
"""Modules that hold others, and have no arguments besides."""
_KINDS_BY_NAME: Final = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
_TENSOR_FACTORY: Final = ("device", "dtype")
"""Arguments that graphs leave out: networks are constructed by the defaults of torch."""


def is_unit(module: nn.Module) -> bool:
    """Return whether a module is one node: one of `torch.nn`, or a basic unit.

    Args:
        module: any module.
    """
    if is_basic_unit(module):
        return True
    return type(module).__module__.startswith("torch.nn.") and not isinstance(module, CONTAINERS)


def unit_operation(module: nn.Module) -> Operation:
    """Return the operation of a module that is one node; raise if its arguments are unknown.

    Args:
        module: module for which `is_unit` is true.

    Raises:
        IllegalGraphError: its class cannot be imported, or its arguments are not known.
    """
    if is_traceable(module, must_be_instance=True):
        traced: Any = module
        return constructed(traced.trace_symbol, traced.trace_args, traced.trace_kwargs)
    return constructed(type(module), [], _recovered_arguments(module))


def constructed(symbol: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Operation:
    """Return the operation of a class and arguments; raise for a class inside a function.

    Args:
        symbol: class of the module.
        args: arguments that can only be passed by position.
        kwargs: arguments by name.

    Raises:
        IllegalGraphError: the class cannot be imported.
    """
    if "<locals>" in symbol.__qualname__:
        raise IllegalGraphError(
            None,
            f"class {symbol.__qualname__} is defined in a function, where no other process finds "
            "it; define it in a module",
        )
    parameters = dict(kwargs)
    if args:
        parameters[POSITIONAL] = list(args)
    name = get_importable_name(symbol, relocate_module=True)
    return Operation.new(f"{MODULE_PREFIX}{name}", parameters)


def _recovered_arguments(module: nn.Module) -> dict[str, Any]:
    """Return a torch module's non-default arguments from its attributes; raise if not all exist."""
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(type(module)).parameters.items():
        if name in _TENSOR_FACTORY or parameter.kind not in _KINDS_BY_NAME:
            continue
        value = _argument(module, name)
        if value is inspect.Parameter.empty:
            continue  # whether its default is right shows below
        if value is not parameter.default and not _is_equal(value, parameter.default):
            arguments[name] = value
    try:
        with torch.device("meta"):
            again = type(module)(**arguments)
    except (TypeError, ValueError, RuntimeError):
        again = None
    if again is None or not _is_same(again, module):
        raise IllegalGraphError(
            None,
            f"the arguments of {type(module).__name__} are not known; use the module of this name "
            "in nni.nas.nn.pytorch.layers, which records them",
        )
    return arguments


def _argument(module: nn.Module, name: str) -> Any:  # noqa: ANN401 - any argument
    """Return a module's argument, `empty` if unknown; of a bias, whether the module has one."""
    value = getattr(module, name, inspect.Parameter.empty)
    if name == "bias" and (value is None or isinstance(value, torch.Tensor)):
        return value is not None
    return value


def _is_equal(one: object, other: object) -> bool:
    """Return whether two plain values are equal, and of one type."""
    return type(one) is type(other) and bool(one == other)


def _is_same(one: nn.Module, other: nn.Module) -> bool:
    """Return whether two modules have the same text, and parameters of the same shapes."""
    return repr(one) == repr(other) and _shapes(one) == _shapes(other)


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in module.state_dict().items()}
