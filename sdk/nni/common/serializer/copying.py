"""Copies and pickles of instances of traced classes.

The wrapper class has the name of the class that it wraps, so pickle does not find it there if the
class was traced at the place of use. A pickle therefore names the class, and traces it again.
"""

import copyreg
from collections.abc import Callable
from typing import Any

from nni.common.serializer.record import RECORD, TraceMarker, marker_of
from nni.common.serializer.symbols import importable_symbol

Reduced = tuple[Any, ...]
CALL = "call"
"""In place of a function that makes the object: the traced class itself."""
_LOWEST_PROTOCOL = 2
"""First protocol in which an object is made by `__new__`."""


def reduction(instance: object, protocol: int, restore: Callable[..., object]) -> str | Reduced:
    """Return how to copy or pickle an instance of a traced class, as `__reduce_ex__` does.

    Args:
        instance: object whose class or base class is a wrapper.
        protocol: version of pickle.
        restore: function that makes the object from the reference to its class, the function that
            makes it (None for `__new__`, `CALL` for the class), its arguments, and the record.
    """
    wrapper = next(cls for cls in type(instance).__mro__ if marker_of(cls) is not None)
    marker = marker_of(wrapper)
    assert marker is not None
    reduced = marker.symbol.__reduce_ex__(instance, max(protocol, _LOWEST_PROTOCOL))
    if isinstance(reduced, str) or wrapper is not type(instance):
        return reduced  # type: ignore[no-any-return]  # a subclass is pickled by its own name
    function, args, *rest = reduced
    record = tuple(vars(instance).get(name) for name in RECORD[1:])
    state = dict(rest[0]) if rest and isinstance(rest[0], dict) else None
    if state is not None and RECORD[1] in state:
        # The arguments stay in the state, where they may refer to the object itself.
        state = {key: value for key, value in state.items() if key != RECORD[0]}
        rest, record = [state, *rest[1:]], ()
    if function is wrapper:
        return restore, (_reference(marker, wrapper), CALL, (args, {}), record), *rest
    make, made_of = _maker(function, args)
    return restore, (_reference(marker, wrapper), make, made_of, record), *rest


def _maker(function: Callable[..., Any], args: Reduced) -> tuple[Any, Reduced]:
    """Return the function that makes the object, None for `__new__`, and its arguments."""
    if function is copyreg.__newobj__:  # type: ignore[attr-defined]  # pickle itself uses it
        return None, (args[1:], {})
    if function is copyreg.__newobj_ex__:  # type: ignore[attr-defined]
        return None, (args[1], args[2])
    return function, args


def _reference(marker: TraceMarker, wrapper: type) -> Reduced:
    """Return the wrapper if it can be imported, else its symbol, and the options to wrap it."""
    decorated = importable_symbol(wrapper) is wrapper
    return (wrapper if decorated else marker.symbol, marker.kw_only, marker.inheritable)
