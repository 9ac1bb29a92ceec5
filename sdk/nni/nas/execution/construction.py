"""Calls that construct strategies and middleware, to be made again in another process."""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Callable
from typing import Any, Final

from nni.common.serializer.record import is_traceable
from nni.common.serializer.tracing import SerializableObject

_SEED: Final = "seed"
_RECORD: Final = "_construction"
"""Attribute with the arguments of the constructor."""
_SEED_BITS: Final = 31
"""Seeds are numbers that every generator of random numbers takes."""


class Reconstructible:
    """Base of classes whose objects remember the call of their constructor.

    An object that was not used yet travels as this call: it may hold locks and open state, which
    nothing can store. Arguments are remembered as they were passed, so they must not be changed.

    Examples:
        >>> class Walk(Reconstructible):
        ...     def __init__(self, steps, seed=None):
        ...         self.steps = steps
        >>> construction_of(Walk(3, seed=5)).trace_kwargs
        {'steps': 3, 'seed': 5}
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 - of other bases
        """Let the constructor of a subclass record its arguments."""
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _recording(vars(cls)["__init__"])  # type: ignore[method-assign] # wraps


def _recording(constructor: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(constructor)
    def record_and_construct(self: Reconstructible, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as passed
        if _RECORD not in vars(self):  # otherwise a base class is constructed by its subclass
            vars(self)[_RECORD] = (args, kwargs)
        constructor(self, *args, **kwargs)

    return record_and_construct


def construction_of(value: Any) -> Any:  # noqa: ANN401 - any object
    """Return a traced call that builds an object again, seed drawn; lists by item, others as is.

    Arguments that are such objects become calls, too. A `seed` that was not given is drawn here, so
    that each construction makes the same choices.

    Args:
        value: strategy, middleware, or another argument.

    Returns:
        A `SerializableObject` for an object of `Reconstructible`.
    """
    if isinstance(value, (list, tuple)):
        return type(value)(construction_of(one) for one in value)
    if not isinstance(value, Reconstructible):
        return value
    if is_traceable(value, must_be_instance=True):
        traced: Any = value
        symbol, args, kwargs = traced.trace_symbol, traced.trace_args, traced.trace_kwargs
    else:
        symbol = type(value)
        args, kwargs = vars(value).get(_RECORD, ((), {}))
    args, kwargs = _by_name(symbol, tuple(args), dict(kwargs))
    return SerializableObject(
        symbol,
        [construction_of(one) for one in args],
        {name: construction_of(one) for name, one in kwargs.items()},
    )


def _by_name(
    symbol: Any,  # noqa: ANN401 - a class
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments, by name where they have one; a missing `seed` argument is drawn."""
    parameters = inspect.signature(symbol).parameters
    names = [
        name
        for name, one in parameters.items()
        if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    has_more = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters.values())
    if not has_more and len(args) <= len(names):
        kwargs = {**dict(zip(names, args, strict=False)), **kwargs}
        args = ()
    if _SEED in parameters and not args and kwargs.get(_SEED) is None:
        kwargs[_SEED] = secrets.randbits(_SEED_BITS)
    return args, kwargs
