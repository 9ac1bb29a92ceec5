"""Results of traced functions: values of builtin types get a class that can carry a record."""

import functools
import inspect
import io
import types
from collections.abc import Callable
from typing import Any

from nni.common.serializer.record import RECORD

_WRAPPED = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)


def check_result(result: object, function: object) -> None:
    """Raise TypeError if a result of a traced function cannot carry a record.

    Args:
        result: what the function has returned.
        function: the function, for the message.
    """
    if isinstance(result, type | types.ModuleType | io.IOBase) or inspect.isroutine(result):
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(
            f"a traced function returns an object that can be made again; {name} returned the "
            f"{_kind_of(result)} {result!r}"
        )


def _kind_of(result: object) -> str:
    if isinstance(result, type):
        return "class"
    if isinstance(result, types.ModuleType):
        return "module"
    return "open file" if isinstance(result, io.IOBase) else "function"


def wrapped_value(result: Any) -> Any:  # noqa: ANN401 - any result of a user's function
    """Return an object with a `__dict__` that equals a result; the result itself if it has one.

    Args:
        result: None, a value of a builtin type, an array, or any object.

    Returns:
        None becomes an object that is not None and is true; other values become instances of a
        subclass. A bool becomes an int, since bool has no subclasses.

    Raises:
        TypeError: the result cannot carry attributes.
    """
    if hasattr(result, "__dict__"):
        return result
    if result is None:
        return TracedNone()
    if isinstance(result, bool):
        return _carrier_class(int)(result)
    kind: Any = type(result)  # mypy takes a class for unhashable
    if kind in _WRAPPED:
        return _carrier_class(kind)(result)
    if hasattr(result, "__array_finalize__"):
        return result.view(_carrier_class(kind))
    raise TypeError(
        f"an object of {type(result).__qualname__} cannot carry the record of the call that made "
        "it, because it takes no attributes; return an object of a class without __slots__"
    )


class TracedNone:
    """Truthy stand-in for the None of a traced function, which can carry the call's record."""

    def __repr__(self) -> str:
        """Return `None`, as the `repr` of the represented value."""
        return "None"


@functools.cache
def _carrier_class(base: type) -> Callable[..., Any]:
    """Return the cached subclass of a builtin or array type whose instances have a `__dict__`."""

    def __reduce_ex__(self: Any, protocol: int) -> tuple[Any, ...]:  # noqa: ANN401, N807 - see pickle
        del protocol
        plain = self.view(base) if hasattr(base, "__array_finalize__") else base(self)
        return restored_value, (plain, vars(self))

    names = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    return type(base.__name__, (base,), {**names, "__reduce_ex__": __reduce_ex__})


def restored_value(plain: Any, attributes: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
    """Rebuild a value of a builtin type with its record of the call; unpickling calls this.

    Args:
        plain: the value.
        attributes: what its `__dict__` holds.
    """
    carrier = wrapped_value(plain)
    vars(carrier).update(attributes)
    copy = attributes.get("trace_copy")
    if copy is not None and all(name in attributes for name in RECORD):
        copy.carrier = carrier
    return carrier
