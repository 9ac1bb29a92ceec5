"""Classes made from those of `torch.nn`: with mutable arguments, and named as the originals."""

import inspect
from typing import Any, Final

from torch import nn

from nni.nas.nn.pytorch.parametrized import ParametrizedModule

__all__ = ["MUTABLE_PREFIX", "mutable_classes", "torch_module_names"]

MUTABLE_PREFIX: Final = "Mutable"
"""Begin of the names of the classes with mutable arguments in `nni.nas.nn.pytorch`."""
_LEFT_OUT: Final = frozenset({"Module", "Container", "NLLLoss2d", "CrossMapLRN2d"})
"""The base of all modules, and deprecated classes."""


def torch_module_names() -> list[str]:
    """Return the names of the public modules of `torch.nn`, sorted.

    Returns:
        Names of classes; the base class and deprecated ones are left out.

    Examples:
        >>> "Conv2d" in torch_module_names(), "Module" in torch_module_names()
        (True, False)
    """
    return sorted(
        name
        for name, value in vars(nn).items()
        if inspect.isclass(value)
        and issubclass(value, nn.Module)
        and not name.startswith("_")
        and name not in _LEFT_OUT
    )


def mutable_classes(module: str, prefix: str) -> dict[str, type[ParametrizedModule]]:
    """Return a class with mutable arguments for each module of `torch.nn`, by prefixed name.

    Args:
        module: name of the module that will export them, for pickles.
        prefix: begin of their names.

    Returns:
        Name to class.

    Examples:
        >>> list(mutable_classes("example", "My"))[:2]
        ['MyAdaptiveAvgPool1d', 'MyAdaptiveAvgPool2d']
    """
    return {
        f"{prefix}{name}": _mutable_class(getattr(nn, name), module, prefix)
        for name in torch_module_names()
    }


def _mutable_class(wraps: type[nn.Module], module: str, prefix: str) -> type[ParametrizedModule]:
    name = f"{prefix}{wraps.__name__}"
    namespace: dict[str, Any] = {
        "__module__": module,
        "__qualname__": name,
        "__doc__": (
            f"`torch.nn.{wraps.__name__}` whose arguments may be mutables.\n\n"
            f"{inspect.getdoc(wraps) or ''}"
        ),
    }
    metaclass: Any = type(ParametrizedModule)
    made: type[ParametrizedModule] = metaclass(
        name, (ParametrizedModule, wraps), namespace, wraps=wraps
    )
    return made
