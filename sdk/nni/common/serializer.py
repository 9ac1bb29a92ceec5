"""Record of constructor arguments, so that an object can be built again: `nni.trace`.

A compressor builds optimizers and schedulers anew for each model that it trains. This is the
documented home of `trace` and `is_traceable`.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_R = TypeVar("_R")
_RECORD = ("trace_symbol", "trace_args", "trace_kwargs")

__all__ = ["is_traceable", "trace"]


def trace(cls_or_func: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a class or function whose results know how they were made.

    An instance of a traced class has the attributes `trace_symbol` (the class), `trace_args` and
    `trace_kwargs`, and is an instance of the class. The result of a traced function has them if
    it takes attributes. The arguments are kept, not copied.

    Args:
        cls_or_func: class or function, such as `torch.optim.SGD`.

    Returns:
        A subclass, or a function that calls the given one.

    Raises:
        TypeError: `cls_or_func` cannot be called.

    Examples:
        >>> import nni
        >>> class Rate:
        ...     def __init__(self, value, *, decay=1.0):
        ...         self.value = value
        >>> rate = nni.trace(Rate)(0.1, decay=0.5)
        >>> rate.trace_args, rate.trace_kwargs, isinstance(rate, Rate)
        ((0.1,), {'decay': 0.5}, True)
    """
    if isinstance(cls_or_func, type):
        return cast("Callable[_P, _R]", _traced_class(cls_or_func))
    if not callable(cls_or_func):
        raise TypeError(f"nni.trace needs a class or function, got {cls_or_func!r}")

    @functools.wraps(cls_or_func)
    def traced(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        result = cls_or_func(*args, **kwargs)
        if hasattr(result, "__dict__"):
            _record(result, cls_or_func, args, kwargs)
        return result

    return traced


def is_traceable(obj: object) -> bool:
    """Return whether an object was made by a traced class or function.

    Args:
        obj: any object.

    Returns:
        True if it knows how it was made.

    Examples:
        >>> is_traceable(3)
        False
    """
    return all(hasattr(obj, name) for name in _RECORD)


def _traced_class(cls: type) -> type:
    def init(self: object, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - of any class
        _record(self, cls, args, kwargs)
        cls.__init__(self, *args, **kwargs)  # type: ignore[misc]  # the constructor of the base

    names = ("__module__", "__qualname__", "__doc__")
    kept = {name: getattr(cls, name) for name in names}
    reduce = {"__reduce_ex__": _reduce}
    functools.update_wrapper(init, cls.__init__)  # type: ignore[misc]
    return type(cls)(cls.__name__, (cls,), {**kept, **reduce, "__init__": init})


def _reduce(self: object, _protocol: object) -> tuple[object, ...]:
    """Return how to copy or pickle an instance: its class has no importable name."""
    symbol = self.trace_symbol  # type: ignore[attr-defined]  # every traced instance has it
    return _empty, (symbol,), getattr(self, "__getstate__", lambda: vars(self))()


def _empty(symbol: type) -> object:
    return object.__new__(_traced_class(symbol))


def _record(
    result: object, symbol: object, args: tuple[object, ...], kwargs: dict[str, Any]
) -> None:
    for name, value in zip(_RECORD, (symbol, args, kwargs), strict=True):
        vars(result)[name] = value  # not by setattr: modules check what is assigned
