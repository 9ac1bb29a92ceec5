"""Names of classes and functions: found by import, so that a document can name them."""

import importlib
import sys
from types import ModuleType
from typing import Any

from nni.common.serializer.record import unwrapped_symbol

_MAIN = "__main__"


def importable_symbol(symbol: Any) -> Any:  # noqa: ANN401 - any class or function
    """Import the object at the module and name of a class or function; None if there is none.

    Args:
        symbol: class or function; it may itself be hidden by a wrapper with its name.
    """
    module_name = getattr(symbol, "__module__", None)
    qualified = getattr(symbol, "__qualname__", None)
    if not module_name or not qualified or "<locals>" in qualified:
        return None
    try:
        found: Any = sys.modules.get(module_name) or importlib.import_module(module_name)
        for name in qualified.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return None
    return found


def symbol_path(symbol: Any) -> str | None:  # noqa: ANN401 - any class or function
    """Return the importable path of a class or function; None if local or in `__main__`.

    Args:
        symbol: class or function, wrapped by `nni.trace` or not.

    Returns:
        None if another process cannot import it: it is local, a lambda, defined in `__main__`, or
        another object stands under its name.
    """
    wanted = unwrapped_symbol(symbol)
    if getattr(wanted, "__module__", None) == _MAIN:
        return None
    if unwrapped_symbol(importable_symbol(wanted)) is not wanted:
        return None
    return f"{wanted.__module__}.{wanted.__qualname__}"


def symbol_at(path: str) -> Any:  # noqa: ANN401 - any class or function
    """Import the class or function at a dotted path; raise ImportError if there is none.

    Args:
        path: module and name, such as `torch.optim.adam.Adam`; the name may have points, too.

    Raises:
        ImportError: the module or the name in it does not exist.
    """
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = _module(".".join(parts[:length]))
        if module is None:
            continue
        found: Any = module
        try:
            for name in parts[length:]:
                found = getattr(found, name)
        except AttributeError as error:
            raise ImportError(f"cannot load {path!r}: {error}") from error
        return found
    raise ImportError(
        f"cannot load {path!r}: no module {parts[0]!r} here; install it, or add its folder to the "
        "path of Python"
    )


def _module(name: str) -> ModuleType | None:
    """Import a module; None if there is no module of this name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise  # the module exists and needs another one that does not
