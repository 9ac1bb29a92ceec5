"""Names by which another process imports a class or function."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import __main__

__all__ = ["get_importable_name", "import_"]

_SCRIPT: Final = "__main__"


def import_(name: str) -> Any:  # noqa: ANN401 - whatever has that name
    """Import the object with this full name; raise ImportError if there is none.

    Args:
        name: full name with at least one dot, such as `torch.nn.Linear`; parts at the end may be
            attributes of a class.

    Returns:
        The object.

    Raises:
        ImportError: no module, or no attribute of it, has the name.

    Examples:
        >>> import_("collections.OrderedDict.fromkeys").__name__
        'fromkeys'
    """
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:count])
        try:
            found: Any = import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is not None and not module_name.startswith(error.name):
                raise  # the module exists; what it imports does not
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                raise ImportError(f"{name!r} cannot be imported: {found!r} has no {part!r}")
            found = getattr(found, part)
        return found
    raise ImportError(f"{name!r} cannot be imported: it needs the form 'module.attribute'")


def get_importable_name(
    symbol: type[Any] | Any,  # noqa: ANN401 - any class or function
    relocate_module: bool = False,  # noqa: FBT001, FBT002 - spelled so by the specification
) -> str:
    """Return a class's or function's full name; with `relocate_module` a script by its file.

    Args:
        symbol: class or function; an object that was made by a traced class stands for the class.
        relocate_module: whether a class of the launched script is named by the stem of its file,
            as a worker imports it, rather than by `__main__`.

    Returns:
        Module and qualified name, joined by a dot.

    Raises:
        RuntimeError: the launched script is no file in the present directory, so that a worker
            which starts there cannot import it.

    Examples:
        >>> from collections import OrderedDict
        >>> get_importable_name(OrderedDict)
        'collections.OrderedDict'
    """
    target = getattr(symbol, "trace_symbol", symbol)
    module = target.__module__
    if relocate_module and module == _SCRIPT:
        module = _stem_of_script(target.__qualname__)
    return f"{module}.{target.__qualname__}"


def _stem_of_script(name: str) -> str:
    file = getattr(__main__, "__file__", None)
    path = Path(file).resolve() if file else None
    if path is None or path.parent != Path.cwd():
        raise RuntimeError(
            f"{name} is defined in the launched script, and {file or 'an interactive session'} "
            f"does not lie in {Path.cwd()}: start the script from its own folder, or move the "
            "class to a module"
        )
    return path.stem
