"""Wrappers of classes and functions whose results carry the call that made them: `nni.trace`."""

import functools
import os
from abc import ABCMeta
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from nni.common.serializer.arguments import Arguments, call_arguments, recorded_arguments
from nni.common.serializer.copying import Reduced, reduction
from nni.common.serializer.record import (
    MARKER,
    RECORD,
    TraceMarker,
    is_traceable,
    marker_of,
    unwrapped_symbol,
)
from nni.common.serializer.traced_results import check_result, wrapped_value

_T = TypeVar("_T", bound=Callable[..., Any])
_SWITCH = "NNI_TRACE_FLAG"
_PREPARED = "_nni_prepared_arguments"


class _Decorator(Protocol):
    def __call__(self, cls_or_func: _T, /) -> _T: ...


class SerializableObject:
    """Recorded call that has not been made yet; its arguments can be changed.

    Args:
        symbol: class or function.
        args: positional arguments.
        kwargs: named arguments.

    Attributes:
        trace_symbol: class or function, without the wrapper of `nni.trace`.
        trace_args: positional arguments.
        trace_kwargs: named arguments.

    Examples:
        >>> import nni
        >>> from fractions import Fraction
        >>> shell = nni.trace(Fraction)(1, 2).trace_copy()
        >>> shell.trace_kwargs["denominator"] = 5
        >>> print(shell.get())
        1/5
    """

    def __init__(self, symbol: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
        self.trace_symbol = unwrapped_symbol(symbol)
        self.trace_args = list(args)
        self.trace_kwargs = dict(kwargs)

    def trace_copy(self) -> "SerializableObject":
        """Return a shell with the same call; lists and dicts among the arguments are copied.

        Returns:
            A new shell.
        """
        return SerializableObject(
            self.trace_symbol,
            [_copied(value) for value in self.trace_args],
            {key: _copied(value) for key, value in self.trace_kwargs.items()},
        )

    def get(self, traceable: bool = True) -> Any:  # noqa: FBT001, FBT002, ANN401 - as documented
        """Make the recorded call, after those among its arguments; return the result.

        Args:
            traceable: the result carries the call.

        Returns:
            What the class or function returns.
        """
        args = [_made(value, traceable) for value in self.trace_args]
        kwargs = {key: _made(value, traceable) for key, value in self.trace_kwargs.items()}
        if traceable:
            return trace(self.trace_symbol, kw_only=not args)(*args, **kwargs)
        passed_args, passed_kwargs = call_arguments((args, kwargs))
        return self.trace_symbol(*passed_args, **passed_kwargs)

    def __repr__(self) -> str:
        """Return the class or function and its arguments."""
        name = getattr(self.trace_symbol, "__qualname__", self.trace_symbol)
        return f"SerializableObject({name}, {self.trace_args}, {self.trace_kwargs})"


@overload
def trace(cls_or_func: _T, *, kw_only: bool = ..., inheritable: bool = ...) -> _T: ...
@overload
def trace(
    cls_or_func: None = None, *, kw_only: bool = ..., inheritable: bool = ...
) -> _Decorator: ...
def trace(
    cls_or_func: _T | None = None, *, kw_only: bool = True, inheritable: bool = False
) -> _T | _Decorator:
    """Return a class or function whose results carry the call that made them.

    The results have the attributes `trace_symbol` (the class or function), `trace_args`,
    `trace_kwargs` and the method `trace_copy`, which returns the call in a form that can be changed
    and made again. An instance of a traced class is an instance of the class. A function may
    return anything except functions, classes, modules and open files; None and values of builtin
    types become objects that can carry attributes, so that None is then not None. Usable as a
    decorator, with and without arguments. Inside a decorated class write `super().__init__()`: the
    form with arguments finds the wrapper under the name of the class and calls itself.

    Args:
        cls_or_func: class or function, such as `torch.optim.SGD`; None returns a decorator.
        kw_only: record positional arguments under their names in the signature.
        inheritable: instances of subclasses carry the call of this class, and the subclasses
            cannot be traced. Without it a subclass is traced only if it is wrapped itself.

    Returns:
        A subclass of the class with its name, or a function that calls the given one; the argument
        itself if it is wrapped already or the environment has `NNI_TRACE_FLAG=disable`.

    Raises:
        TypeError: `cls_or_func` is no class or function, or a class with a metaclass of its own or
            a class below an `inheritable` one whose base is traced.

    Examples:
        >>> import nni
        >>> class Rate:
        ...     def __init__(self, value, *, decay=1.0):
        ...         self.value = value
        >>> rate = nni.trace(Rate)(0.1, decay=0.5)
        >>> rate.trace_kwargs, isinstance(rate, Rate)
        ({'value': 0.1, 'decay': 0.5}, True)
        >>> @nni.trace
        ... def fast_rate(decay):
        ...     return Rate(1.0, decay=decay)
        >>> fast_rate(0.9).trace_kwargs
        {'decay': 0.9}
    """
    if cls_or_func is None:
        return functools.partial(trace, kw_only=kw_only, inheritable=inheritable)
    if os.environ.get(_SWITCH, "").lower() == "disable" or marker_of(cls_or_func) is not None:
        return cls_or_func
    marker = TraceMarker(cls_or_func, kw_only, inheritable)
    wrapper: Any
    if isinstance(cls_or_func, type):
        wrapper = _existing_wrapper(marker) or _traced_class(marker)
    elif _is_function(cls_or_func):
        wrapper = _traced_function(marker)
    else:
        raise TypeError(
            f"nni.trace needs a class or function, got {cls_or_func!r}; trace the class of an "
            "object and call the result"
        )
    traced: _T = wrapper
    return traced


def _is_function(value: object) -> bool:
    """Return whether a value is a function, method or partial, not an object with `__call__`."""
    return callable(value) and (hasattr(value, "__name__") or isinstance(value, functools.partial))


def _existing_wrapper(marker: TraceMarker) -> type | None:
    """Return the wrapper that an earlier call has made of the same class; None: there is none."""
    for subclass in type.__subclasses__(marker.symbol):
        if marker_of(subclass) == marker:
            return subclass
    return None


def _traced_class(marker: TraceMarker) -> type:
    cls = marker.symbol
    _check_bases(cls)
    namespace: dict[str, Any] = {
        name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")
    }

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807 - of any class
        passed = _prepared(self, marker, args, kwargs)
        if cls.__init__ is not object.__init__:
            cls.__init__(self, *passed[0], **passed[1])

    functools.update_wrapper(__init__, cls.__init__)
    namespace["__init__"] = __init__
    if cls.__new__ is not object.__new__:

        def __new__(made: type, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401, N807 - as above
            if marker_of(made) != marker:
                created: object = cls.__new__(made, *args, **kwargs)
                return created
            recorded = recorded_arguments(cls, args, kwargs, kw_only=marker.kw_only)
            passed = call_arguments(recorded)
            created = cls.__new__(made, *passed[0], **passed[1])
            if isinstance(created, made):
                # The constructor gets the same arguments: an iterator can be read only once.
                vars(created)[_PREPARED] = (recorded, passed)
            return created

        namespace["__new__"] = functools.update_wrapper(__new__, cls.__new__)
    namespace |= {MARKER: marker, "__reduce_ex__": _reduce, "trace_copy": _trace_copy}
    wrapper: type = type(cls)(cls.__name__, (cls,), namespace)
    return wrapper


def _check_bases(cls: type) -> None:
    """Raise TypeError if a traced base class keeps a class from being traced."""
    for base in cls.__mro__[1:]:
        marker = marker_of(base)
        if marker is None:
            continue
        if marker.inheritable:
            raise TypeError(
                f"{cls.__name__} cannot be traced: its base {base.__name__} was traced with "
                "inheritable=True, whose record its instances carry"
            )
        if type(cls) not in {type, ABCMeta}:
            raise TypeError(
                f"{cls.__name__} cannot be traced: it has the metaclass {type(cls).__name__} and "
                f"the traced base {base.__name__}; derive it from a base that is not traced"
            )


def _prepared(
    instance: object, marker: TraceMarker, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    """Record the call in a new instance; return the arguments of the real constructor."""
    own = marker_of(type(instance)) == marker
    prepared: tuple[Arguments, Arguments] | None = None
    if own:
        prepared = vars(instance).pop(_PREPARED, None)
    if prepared is None:
        recorded = recorded_arguments(marker.symbol, args, kwargs, kw_only=marker.kw_only)
        prepared = recorded, call_arguments(recorded)
    if own or marker.inheritable:
        attach(instance, marker.symbol, prepared[0])
    return prepared[1]


def _traced_function(marker: TraceMarker) -> Callable[..., Any]:
    function = marker.symbol

    def traced(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of any function
        recorded = recorded_arguments(function, args, kwargs, kw_only=marker.kw_only)
        passed = call_arguments(recorded)
        result = function(*passed[0], **passed[1])
        check_result(result, function)
        carrier = wrapped_value(result)
        attach(carrier, function, recorded)
        vars(carrier)["trace_copy"] = _TraceCopy(carrier)
        return carrier

    functools.update_wrapper(traced, function)
    vars(traced)[MARKER] = marker
    return traced


class _TraceCopy:
    """Method `trace_copy` of an object whose class is not traced."""

    def __init__(self, carrier: Any) -> None:  # noqa: ANN401 - any object
        self.carrier = carrier

    def __call__(self) -> SerializableObject:
        return _trace_copy(self.carrier)


def _trace_copy(self: Any) -> SerializableObject:  # noqa: ANN401 - any traced object
    """Return a shell with the same call, whose arguments can be changed.

    Returns:
        A new shell; its method `get` makes the call.
    """
    return SerializableObject(self.trace_symbol, self.trace_args, self.trace_kwargs).trace_copy()


def _reduce(self: object, protocol: Any) -> str | Reduced:  # noqa: ANN401 - an index
    return reduction(self, int(protocol), restored_instance)


def restored_instance(
    reference: Reduced, make: Callable[..., Any] | str | None, made_of: Reduced, record: Reduced
) -> object:
    """Return an instance of a traced class before its state is set; pickles call it.

    Args:
        reference: class, and the options of `nni.trace`.
        make: function that makes the object; None for `__new__`, `CALL` for the class.
        made_of: arguments of the function.
        record: arguments of the recorded call; empty if the state has them.
    """
    found, kw_only, inheritable = reference
    wrapper: Any = trace(found, kw_only=kw_only, inheritable=inheritable)
    marker = marker_of(wrapper)
    symbol = found if marker is None else marker.symbol
    made: Any
    if make is None:
        made = symbol.__new__(wrapper, *made_of[0], **made_of[1])
    elif callable(make):
        made = make(*made_of)
        if type(made) is symbol:
            made.__class__ = wrapper
    else:
        made = wrapper(*made_of[0], **made_of[1])
    vars(made)[RECORD[0]] = symbol
    for name, value in zip(RECORD[1:], record, strict=False):
        vars(made)[name] = value
    return made


def attach(instance: object, symbol: object, recorded: Arguments) -> None:
    """Write the record of a call into an object.

    Args:
        instance: object with a `__dict__`.
        symbol: class or function without its wrapper.
        recorded: arguments.
    """
    for name, value in zip(RECORD, (symbol, *recorded), strict=True):
        vars(instance)[name] = value  # not by setattr: modules check what is assigned


def _copied(value: Any) -> Any:  # noqa: ANN401 - any argument
    return value.copy() if type(value) in {list, dict} else value


def _made(value: Any, traceable: bool) -> Any:  # noqa: ANN401, FBT001 - any argument
    if isinstance(value, SerializableObject):
        return value.get(traceable)
    if isinstance(value, list) and any(isinstance(one, SerializableObject) for one in value):
        return [_made(one, traceable) for one in value]
    if not traceable and is_traceable(value, must_be_instance=True):
        return value
    return value
