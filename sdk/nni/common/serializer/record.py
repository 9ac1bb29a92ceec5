"""Attributes that a traced object carries, and predicates on them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

RECORD = ("trace_symbol", "trace_args", "trace_kwargs")
"""Names of the attributes that hold the call."""
MARKER = "_nni_trace"
"""Name under which a wrapper keeps its `TraceMarker`, in its own namespace."""


class Traceable(Protocol):
    """Object that carries the call that made it; see `nni.trace`.

    Examples:
        >>> import nni
        >>> from fractions import Fraction
        >>> half: Traceable = nni.trace(Fraction)(1, 2)
        >>> half.trace_symbol.__name__, half.trace_kwargs
        ('Fraction', {'numerator': 1, 'denominator': 2})
    """

    trace_symbol: Any
    """Class or function that was called, without the wrapper."""
    trace_args: list[Any]
    """Arguments that can only be passed by position; mostly empty."""
    trace_kwargs: dict[str, Any]
    """Arguments by name, as the caller gave them."""

    def trace_copy(self) -> Any:  # noqa: ANN401 - a shell whose class is defined above this module
        """Return a shell with the same call, whose arguments can be changed.

        Returns:
            An `nni.common.serializer.SerializableObject`.
        """


class Translatable(ABC):
    """Argument that represents another value: a traced call gets the value instead.

    The record of the call keeps the argument itself. A mutable is one: the real constructor gets
    the value that is chosen now.

    Examples:
        >>> import nni
        >>> class Doubled(Translatable):
        ...     def __init__(self, value):
        ...         self.value = value
        ...     def _unwrap_parameter(self):
        ...         return 2 * self.value
        >>> made = nni.trace(complex)(Doubled(4))
        >>> abs(made), type(made.trace_kwargs["real"]).__name__
        (8.0, 'Doubled')
    """

    @abstractmethod
    def _unwrap_parameter(self) -> object:
        """Return the value that the real class or function gets."""


@dataclass(frozen=True, slots=True)
class TraceMarker:
    """Marker of a wrapper of `nni.trace`: the wrapped symbol and the options."""

    symbol: Any
    """Class or function without the wrapper."""
    kw_only: bool
    """Whether positional arguments are recorded by name."""
    inheritable: bool
    """Whether instances of subclasses carry a record, too."""


def marker_of(cls_or_func: object) -> TraceMarker | None:
    """Return the marker in an object's own namespace, None without one.

    Args:
        cls_or_func: any object; a subclass of a traced class has no marker of its own.
    """
    marker = getattr(cls_or_func, "__dict__", {}).get(MARKER)
    return marker if isinstance(marker, TraceMarker) else None


def is_traceable(obj: object, must_be_instance: bool = False) -> bool:  # noqa: FBT001, FBT002 - as documented
    """Return whether an object carries the call that made it, or is a class of such objects.

    Args:
        obj: any object.
        must_be_instance: a traced class itself does not count.

    Returns:
        True for results of traced classes and functions, and for traced classes.

    Examples:
        >>> import nni
        >>> from fractions import Fraction
        >>> is_traceable(nni.trace(Fraction)(1, 2)), is_traceable(Fraction(1, 2))
        (True, False)
        >>> is_traceable(nni.trace(Fraction), must_be_instance=True)
        False
    """
    if isinstance(obj, type):
        return not must_be_instance and is_wrapped_with_trace(obj)
    return all(hasattr(obj, name) for name in (*RECORD, "trace_copy"))


def is_wrapped_with_trace(cls_or_func: object) -> bool:
    """Return whether a class or function is the result of `nni.trace`.

    Args:
        cls_or_func: any object.

    Returns:
        True for the wrapper itself; a subclass of it is traced only if it is wrapped again.

    Examples:
        >>> import nni
        >>> from fractions import Fraction
        >>> traced = nni.trace(Fraction)
        >>> is_wrapped_with_trace(traced), is_wrapped_with_trace(type("Sub", (traced,), {}))
        (True, False)
    """
    return marker_of(cls_or_func) is not None


def unwrapped_symbol(cls_or_func: Any) -> Any:  # noqa: ANN401 - any class or function
    """Return the symbol that a wrapper wraps; other objects unchanged.

    Args:
        cls_or_func: any object.
    """
    marker = marker_of(cls_or_func)
    return cls_or_func if marker is None else marker.symbol
