"""Choice of the deep-learning framework that the shortcuts of `nni.nas` export.

`nni.nas.nn`, `nni.nas.evaluator`, `nni.nas.hub` and `nni.nas.oneshot` re-export the names of one
framework; the packages below them, such as `nni.nas.nn.pytorch`, are always at hand.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

__all__ = ["get_default_framework", "set_default_framework", "shortcut"]

_KNOWN: Final = ("pytorch", "tensorflow", "mxnet", "none")
_SUPPORTED: Final = "pytorch"
_VARIABLE: Final = "NNI_FRAMEWORK"

_chosen: list[str] = []
"""The framework set by a call, if any; the environment decides before the first call."""


def get_default_framework() -> str:
    """Return the framework that was set, else that of the environment, else `pytorch`.

    Returns:
        What `set_default_framework` was given last; before its first call, the environment
        variable `NNI_FRAMEWORK`; `pytorch` without either.

    Raises:
        ValueError: the environment variable names no known framework.

    Examples:
        >>> get_default_framework()
        'pytorch'
    """
    if _chosen:
        return _chosen[-1]
    return _checked(os.environ.get(_VARIABLE, "").strip().lower() or _SUPPORTED, _VARIABLE)


def set_default_framework(framework: str) -> None:
    """Set the framework whose names the shortcuts export, in this process.

    Call it before the shortcuts are first imported from; a name that has been imported stays.

    Args:
        framework: `pytorch`; or `none`, with which the shortcuts export nothing. `tensorflow` and
            `mxnet` are accepted, and a shortcut then raises `ImportError`: neither is supported.

    Raises:
        ValueError: `framework` is none of these.

    Examples:
        >>> set_default_framework("pytorch")
        >>> set_default_framework("caffe")
        Traceback (most recent call last):
        ValueError: framework must be one of pytorch, tensorflow, mxnet, none, got 'caffe'
    """
    _chosen[:] = [_checked(framework, "framework")]


def shortcut(package: str, names: Sequence[str] = ()) -> Callable[[str], object]:
    """Return the `__getattr__` of a package that re-exports the names of the framework.

    Args:
        package: full name of the package; its subpackage `pytorch` has the names.
        names: further modules of the package to be imported at first use.

    Returns:
        A function for the `__getattr__` of the package.

    Examples:
        >>> get = shortcut("nni.nas.nn")
        >>> get("LayerChoice").__name__
        'LayerChoice'
    """

    def get(name: str) -> object:
        if name in names:
            return import_module(f"{package}.{name}")
        # Asked for by the import system and by inspection; a subpackage is then imported.
        if name.startswith("__") or name in _KNOWN:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        framework = get_default_framework()
        if framework == "none":
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}: the framework is 'none', which "
                f"switches shortcuts off; import from {package}.{_SUPPORTED}"
            )
        if framework != _SUPPORTED:
            raise ImportError(
                f"{package} cannot export {name!r} for {framework}: architecture search supports "
                f"{_SUPPORTED} only; call nni.set_default_framework({_SUPPORTED!r}) or unset "
                f"{_VARIABLE}"
            )
        try:
            return getattr(import_module(f"{package}.{framework}"), name)
        except AttributeError as error:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from error

    return get


def _checked(framework: str, source: str) -> str:
    if framework not in _KNOWN:
        raise ValueError(f"{source} must be one of {', '.join(_KNOWN)}, got {framework!r}")
    return framework
