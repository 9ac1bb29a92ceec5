"""Arguments of a traced call: what is recorded, and what the real callable gets."""

import functools
import inspect
import io
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from nni.common.serializer.record import RECORD

Arguments = tuple[list[Any], dict[str, Any]]
"""Positional and named arguments."""
_KEPT_ITERATORS = (io.IOBase, itertools.count, itertools.cycle, itertools.repeat)
"""Files, and iterators without an end."""
_KEPT_PARAMETERS = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


@functools.lru_cache(maxsize=512)
def _parameters_of(symbol: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    """Return the parameters of a callable; a search calls the same ones for each candidate."""
    return tuple(inspect.signature(symbol).parameters.values())


def recorded_arguments(
    symbol: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    kw_only: bool,
    is_method: bool = False,
) -> Arguments:
    """Return a call's arguments for its record: iterators as lists, all by name if kw_only.

    Args:
        symbol: class or function that is called.
        args: positional arguments.
        kwargs: named arguments.
        kw_only: record positional arguments by name, where the signature has names.
        is_method: the first parameter is the instance, which is not among the arguments.

    Returns:
        Positional and named arguments; iterators are expanded to lists, since they can be read
        only once.

    Raises:
        ValueError: there are more positional arguments than the signature has.
        TypeError: an argument is given twice.
    """
    positional = [_replayable(value) for value in args]
    named = {name: _replayable(value) for name, value in kwargs.items()}
    if not kw_only or not positional:
        return positional, named
    try:
        parameters = _parameters_of(symbol)
    except (TypeError, ValueError):
        return positional, named  # builtins written in C may have none
    places = [one for one in parameters if one.kind in _KEPT_PARAMETERS][is_method:]
    if len(positional) > len(places):
        if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters):
            return positional, named
        raise ValueError(
            f"{_name_of(symbol)} takes at most {len(places)} positional arguments, "
            f"got {len(positional)}"
        )
    return _by_name(symbol, places, positional, named)


def _by_name(
    symbol: object,
    places: list[inspect.Parameter],
    positional: list[Any],
    named: dict[str, Any],
) -> Arguments:
    kept: list[Any] = []
    mapped: dict[str, Any] = {}
    for place, value in zip(places, positional, strict=False):
        if place.kind is inspect.Parameter.POSITIONAL_ONLY:
            kept.append(value)
        elif place.name in named:
            raise TypeError(f"{_name_of(symbol)} got two values of argument {place.name!r}")
        else:
            mapped[place.name] = value
    if kept:
        warnings.warn(
            f"{len(kept)} arguments of {_name_of(symbol)} have no name in its signature and are "
            "recorded by position; they cannot be mutated",
            RuntimeWarning,
            stacklevel=4,
        )
    return kept, {**mapped, **named}


def call_arguments(recorded: Arguments) -> Arguments:
    """Return recorded arguments in the form that the real callable gets.

    Lists and dicts are copies, so that the callee cannot change the record. Values that represent
    other values (`nni.common.serializer.Translatable`) are replaced by these, and mutables by their
    values in the current `nni.mutable.frozen_context` or by their default, also inside lists,
    tuples and dicts.

    Args:
        recorded: result of `recorded_arguments`.
    """
    args, kwargs = recorded
    return [_passed(value) for value in args], {key: _passed(kwargs[key]) for key in kwargs}


def _passed(value: Any) -> Any:  # noqa: ANN401 - any argument
    unwrap = getattr(type(value), "_unwrap_parameter", None)
    if unwrap is not None:
        return unwrap(value)
    # Only a program that has mutables has this module; a trial without them does not pay for it.
    mutables = sys.modules.get("nni.mutable")
    if mutables is not None and isinstance(value, mutables.Mutable):
        return mutables.ensure_frozen(value, strict=False)
    if type(value) is list:
        return [_passed(one) for one in value]
    if type(value) is dict:
        return {key: _passed(one) for key, one in value.items()}
    if type(value) is tuple:
        return tuple(_passed(one) for one in value)
    return value


def _replayable(value: Any) -> Any:  # noqa: ANN401 - any argument
    """Return a list in place of an iterator, which a second call would find exhausted."""
    if not isinstance(value, Iterator) or isinstance(value, _KEPT_ITERATORS):
        return value
    return value if all(hasattr(value, name) for name in RECORD) else list(value)


def _name_of(symbol: object) -> str:
    return getattr(symbol, "__qualname__", repr(symbol))
