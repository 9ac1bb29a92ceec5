"""Spellings of `nni.trace` in NNI 2.x: `serialize` and `serialize_cls`."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from nni.common.serializer import trace

__all__ = ["serialize", "serialize_cls"]

_R = TypeVar("_R")
_C = TypeVar("_C", bound=Callable[..., Any])


def serialize(cls: Callable[..., _R], *args: Any, **kwargs: Any) -> _R:  # noqa: ANN401 - of any class
    """Construct an object that records its construction, and warn: write `nni.trace(cls)(...)`.

    Args:
        cls: class or function.
        *args: its positional arguments.
        **kwargs: its named arguments.

    Returns:
        What the class or function returns.

    Examples:
        >>> from fractions import Fraction
        >>> with warnings.catch_warnings(action="ignore"):
        ...     print(serialize(Fraction, 1, 2))
        1/2
    """
    warnings.warn(
        "serialize(cls, ...) is deprecated; write nni.trace(cls)(...)",
        DeprecationWarning,
        stacklevel=2,
    )
    return trace(cls)(*args, **kwargs)


def serialize_cls(cls: _C) -> _C:
    """Return a class whose instances record their construction, and warn: write `nni.trace`.

    Args:
        cls: class or function.

    Returns:
        The traced one.

    Examples:
        >>> from fractions import Fraction
        >>> with warnings.catch_warnings(action="ignore"):
        ...     serialize_cls(Fraction)(1, 2).trace_kwargs
        {'numerator': 1, 'denominator': 2}
    """
    warnings.warn(
        "serialize_cls(cls) is deprecated; write nni.trace(cls)", DeprecationWarning, stacklevel=2
    )
    return trace(cls)
