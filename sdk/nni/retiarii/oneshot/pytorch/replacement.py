"""Replacement of the choices of a network by modules of a one-shot trainer of the user's own."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

from nni.nas.nn.pytorch import InputChoice, LayerChoice

_P = TypeVar("_P", bound=nn.Module)

Replaced = list[tuple[str, nn.Module]]
"""Labels and new modules, in the order of the network."""


def replace_layer_choice(
    root_module: nn.Module,
    init_fn: Callable[[Any], nn.Module],
    modules: Replaced | None = None,
) -> Replaced:
    """Replace each choice among layers of a network, in place.

    Args:
        root_module: network.
        init_fn: function of a `LayerChoice` that returns the module in its place.
        modules: list that labels and new modules are appended to; None for a new one. Choices of
            one label appear once for each place.

    Returns:
        The list.
    """
    return _replaced(root_module, LayerChoice, init_fn, [] if modules is None else modules)


def replace_input_choice(
    root_module: nn.Module,
    init_fn: Callable[[Any], nn.Module],
    modules: Replaced | None = None,
) -> Replaced:
    """Replace each choice among tensors of a network, in place.

    Args:
        root_module: network.
        init_fn: function of an `InputChoice` that returns the module in its place.
        modules: as of `replace_layer_choice`.

    Returns:
        The list.
    """
    return _replaced(root_module, InputChoice, init_fn, [] if modules is None else modules)


def _replaced(
    module: nn.Module, kind: type[_P], init_fn: Callable[[Any], nn.Module], modules: Replaced
) -> Replaced:
    for name, child in module.named_children():
        if isinstance(child, kind):
            replacement = init_fn(child)
            setattr(module, name, replacement)
            modules.append((str(child.label), replacement))
        else:
            _replaced(child, kind, init_fn, modules)
    return modules
