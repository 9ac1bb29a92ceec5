"""Names that parameters of a found network have in its space: `original_state_dict_hooks`.

A frozen network has its chosen layers where the space has choices, so `body.weight` of the network
is `body.1.weight` of the space. Primitives record that on what they are frozen to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from torch import nn

__all__ = ["original_names", "original_state_dict_hooks", "record_name", "record_place"]

_PLACE: Final = "_nni_place"
"""Attribute of a frozen module: its name relative to the primitive that stood in its place."""

_NAME: Final = "_nni_original_name"
"""Attribute of a module: its name in the space, in place of that of the attribute it is."""


def record_name(module: nn.Module, *names: str) -> None:
    """Record under which name the space has a module, if the network has another attribute for it.

    Args:
        module: module of a network.
        *names: parts of its name, relative to that of the module that contains it.
    """
    vars(module)[_NAME] = names


def record_place(frozen: nn.Module, *names: str, continues: bool = False) -> None:
    """Record where in a primitive the module stands that the primitive was frozen to.

    Args:
        frozen: module in place of the primitive.
        *names: parts of its name in the primitive.
        continues: whether a primitive of that name was frozen to `frozen` before, so that its
            record is the end of this one.
    """
    inner = vars(frozen).get(_PLACE, ()) if continues else ()
    vars(frozen)[_PLACE] = (*names, *inner)


def original_names(network: nn.Module) -> dict[str, str]:
    """Return the names in the space for all parameters and buffers of a network.

    Args:
        network: what a space was frozen to, or what was constructed in `model_context`.

    Returns:
        Name in the network to name in the space.

    Examples:
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import LayerChoice, recursive_freeze
        >>> space = nn.Sequential(LayerChoice([nn.Identity(), nn.Linear(1, 1)], label="layer"))
        >>> original_names(recursive_freeze(space, {"layer": 1})[0])
        {'0.weight': '0.1.weight', '0.bias': '0.1.bias'}
    """
    return dict(_names(network, (), ()))


def _names(
    module: nn.Module, here: tuple[str, ...], there: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield present and original name of each tensor, once for each way to its module."""
    there = (*there, *vars(module).get(_PLACE, ()))
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    for name, _ in own:
        yield ".".join((*here, name)), ".".join((*there, name))
    for name, child in module.named_children():
        yield from _names(child, (*here, name), (*there, *vars(child).get(_NAME, (name,))))


@contextmanager
def original_state_dict_hooks(network: nn.Module) -> Iterator[None]:
    """Within a block, let a network read and write state dicts with the names of its space.

    Inside, `network.load_state_dict(space.state_dict(), strict=False)` loads the weights of a space
    or a supernet, which has more entries than the network, and `network.state_dict()` has the names
    of the space.

    Args:
        network: what a space was frozen to, or what was constructed in `model_context`.

    Yields:
        Nothing.

    Examples:
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import LayerChoice, recursive_freeze
        >>> space = nn.Sequential(LayerChoice([nn.Identity(), nn.Linear(1, 1)], label="layer"))
        >>> network = recursive_freeze(space, {"layer": 1})[0]
        >>> with original_state_dict_hooks(network):
        ...     list(network.state_dict())
        ['0.1.weight', '0.1.bias']
    """
    names = original_names(network)

    def write(_: nn.Module, state: dict[str, Any], prefix: str, __: object) -> None:
        for here, there in names.items():
            if here != there and prefix + here in state:
                state[prefix + there] = state.pop(prefix + here)

    def read(state: dict[str, Any], prefix: str, *_: object) -> None:
        found = {
            here: state[prefix + there] for here, there in names.items() if prefix + there in state
        }
        for there in set(names.values()):
            state.pop(prefix + there, None)
        state.update({prefix + here: value for here, value in found.items()})

    hooks = [
        network._register_state_dict_hook(write),  # type: ignore[no-untyped-call]  # noqa: SLF001 - public only in newer torch
        network._register_load_state_dict_pre_hook(read),  # type: ignore[no-untyped-call]  # noqa: SLF001
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
