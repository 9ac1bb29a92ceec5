"""Names of functions in graphs, and the functions of names."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any, Final

import torch

from nni.nas.space.graph import IllegalGraphError
from nni.nas.utils.importable_names import import_

_PUBLIC: Final[dict[str, Any]] = {
    "builtins": builtins,
    "operator": operator,
    "math": math,
    "torch": torch,
    "torch.nn.functional": torch.nn.functional,
}
"""Modules in which a function is looked for before its own, which may be private."""


def function_name(function: Callable[..., Any]) -> str:
    """Return the full name by which a function is imported; raise if there is none.

    Args:
        function: function of a framework, of Python, or of the user.

    Raises:
        IllegalGraphError: it cannot be imported by a name.
    """
    short = getattr(function, "__name__", "")
    for module_name, module in _PUBLIC.items():
        if getattr(module, short, None) is function:
            return f"{module_name}.{short}"
    name = f"{getattr(function, '__module__', None)}.{getattr(function, '__qualname__', short)}"
    try:
        found = import_(name)
    except (ImportError, ValueError):
        found = None
    if found is not function:
        raise IllegalGraphError(
            None, f"function {function!r} cannot be imported by its name; define it in a module"
        )
    return name


def function_of(name: str) -> Callable[..., Any]:
    """Import the function of a full name.

    Args:
        name: what `function_name` returned.

    Raises:
        ImportError: there is none.
    """
    module_name, _, short = name.rpartition(".")
    module = _PUBLIC.get(module_name)
    found: Callable[..., Any] = import_(name) if module is None else getattr(module, short)
    return found
