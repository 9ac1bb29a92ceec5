"""Modules whose constructor arguments are mutables: `ParametrizedModule`."""

import functools
import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

from torch import Tensor, nn

from nni.common.serializer import SerializableObject
from nni.common.serializer.arguments import recorded_arguments
from nni.common.serializer.record import MARKER, TraceMarker
from nni.common.serializer.tracing import attach
from nni.mutable import Mutable, Sample, ensure_frozen, label_scope
from nni.nas.nn.pytorch.base import MutableModule, frozen_copy, recursive_freeze
from nni.nas.space.context import current_model, model_context
from nni.nas.space.graph_forms import UnitForm
from nni.nas.utils.markers import BASIC_UNIT

__all__ = ["ParametrizedModule"]

_CONSTRUCTED: Final = "_nni_constructed"
"""Attribute that tells the constructor of a subclass from those that it calls."""
_SCOPE: Final = "_nni_label_scope"
"""Attribute with the name of the label scope in which a module was constructed."""


class ParametrizedModule(MutableModule):
    """Base of modules whose constructor takes mutables, and sees one value of each.

    A subclass is written like any module. Its constructor gets the default of a mutable argument,
    or the value of the sample inside `model_context`. `freeze` constructs the module again, with
    fresh weights. An argument is seen as mutable if it is a mutable itself: in a tuple or list it
    is not, which warns. Graphs hold such a module as one node.

    Class keywords: `wraps` names the class that is built when the module is frozen, and whose
    constructor receives the values; `copy_wrapped` gives the subclass its name and docstring.

    Args:
        *args: positional arguments of the subclass.
        **kwargs: named arguments of the subclass.

    Attributes:
        trace_symbol: the class.
        trace_args: arguments that can only be passed by position; mostly empty.
        trace_kwargs: arguments by name, mutables included.

    Examples:
        >>> import nni
        >>> class Head(ParametrizedModule):
        ...     def __init__(self, features):
        ...         super().__init__()
        ...         self.linear = nn.Linear(features, 10)
        >>> head = Head(nni.choice("features", [16, 32]))
        >>> head.linear.in_features, head.freeze({"features": 32}).linear.in_features
        (16, 32)
    """

    if TYPE_CHECKING:  # TorchScript takes annotations for attributes that it must compile
        trace_symbol: Any
        trace_args: list[Any]
        trace_kwargs: dict[str, Any]

    __jit_unused_properties__: ClassVar = ["args", "mutables"]
    _wrapped: ClassVar[type[nn.Module] | None] = None

    def __init_subclass__(
        cls,
        *,
        wraps: type[nn.Module] | None = None,
        copy_wrapped: bool = False,
        **kwargs: Any,  # noqa: ANN401 - class keywords of other bases
    ) -> None:
        """Make the constructor of a subclass resolve mutables and record its arguments."""
        super().__init_subclass__(**kwargs)
        setattr(cls, BASIC_UNIT, True)
        setattr(cls, MARKER, TraceMarker(cls, kw_only=True, inheritable=False))
        cls._wrapped = wraps  # not that of a base class, whose methods a subclass may override
        if wraps is not None:
            if "__init__" not in vars(cls):
                cls.__init__ = _plain_constructor(wraps)  # type: ignore[method-assign]
            if copy_wrapped:
                cls.__name__, cls.__qualname__ = wraps.__name__, wraps.__name__
                cls.__doc__ = wraps.__doc__
        if "__init__" in vars(cls):
            cls.__init__ = _resolving(vars(cls)["__init__"])  # type: ignore[method-assign]

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - of any module
        super().__init__(*args, **kwargs)

    @classmethod
    def should_invoke_fixed_module(cls) -> bool:
        """Return whether the class wraps another one, which is built inside `model_context`."""
        return cls._wrapped is not None

    @classmethod
    def create_fixed_module(cls, sample: Sample, *args: Any, **kwargs: Any) -> nn.Module:  # noqa: ANN401 - of any module
        """Return an instance of the wrapped class, constructed with the values of the sample."""
        if cls._wrapped is None:
            return super().create_fixed_module(sample, *args, **kwargs)
        return cls._wrapped(
            *(_value_in(one, sample) for one in args),
            **{name: _value_in(one, sample) for name, one in kwargs.items()},
        )

    @property
    def args(self) -> dict[str, Any]:
        """Arguments of the constructor by name, mutables included."""
        return self.trace_kwargs

    def trace_copy(self) -> SerializableObject:
        """Return a copy of the recorded construction, whose arguments can be changed.

        Returns:
            A shell; its method `get` constructs a module.
        """
        return SerializableObject(
            self.trace_symbol, self.trace_args, self.trace_kwargs
        ).trace_copy()

    def graph_form(self) -> UnitForm:
        """Return class and arguments, mutables included; raise if a module inside is mutable.

        Raises:
            TypeError: a module inside is mutable, too, which a graph does not see.
        """
        inside = [name for name, _ in self.named_mutable_descendants()]
        if inside:
            raise TypeError(
                f"{type(self).__name__} is one node of a graph, and {inside[0]!r} inside is "
                "mutable; derive the class from torch.nn.Module, or use the simplified format"
            )
        return UnitForm(self._wrapped or type(self), self.trace_args, self.trace_kwargs)

    def freeze(self, sample: Sample) -> nn.Module:
        """Return a new module of a sample's values; without own mutables, a frozen copy.

        Args:
            sample: value of each label.

        Returns:
            An instance of the wrapped class if there is one, else of this class, in the mode and
            with the device and dtype of this module. Without a mutable argument it is the module
            itself, or a copy with its weights if a module inside is mutable.
        """
        self.validate(sample)
        if not self.mutables:
            return frozen_copy(self, sample)[0]
        symbol = self._wrapped or type(self)
        args = [_frozen(one, sample) for one in self.trace_args]
        kwargs = {name: _frozen(one, sample) for name, one in self.trace_kwargs.items()}
        with model_context(sample), scope_at_construction(self):
            made: nn.Module = symbol(*args, **kwargs)
        return placed_like(made, self)


def placed_like(made: nn.Module, original: nn.Module) -> nn.Module:
    """Give a new module the mode, device and dtype of the one that it replaces; return it.

    Args:
        made: new module.
        original: module that was moved, converted or set to eval mode since its construction.

    Returns:
        `made`.
    """
    made.train(original.training)
    ours, others = _first_floating(made), _first_floating(original)
    if ours is not None and others is not None:
        if ours.device != others.device:
            made.to(others.device)
        if ours.dtype != others.dtype:
            made.to(others.dtype)
    return made


def _first_floating(module: nn.Module) -> Tensor | None:
    """Return the first parameter or buffer of floating-point numbers; None without any."""
    tensors = itertools.chain(module.parameters(), module.buffers())
    return next((one for one in tensors if one.is_floating_point()), None)


def _plain_constructor(wraps: type[nn.Module]) -> Callable[..., None]:
    """Return a constructor that calls the one of the wrapped class, with its signature."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807 - of any class
        wraps.__init__(self, *args, **kwargs)

    return functools.update_wrapper(__init__, wraps.__init__)


def _resolving(constructor: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that registers mutable arguments and passes on their values."""

    @functools.wraps(constructor)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807 - of any class
        if vars(self).get(_CONSTRUCTED):  # a subclass has recorded its own arguments
            constructor(self, *args, **kwargs)
            return
        vars(self)[_CONSTRUCTED] = True
        remember_scope(self)
        recorded = recorded_arguments(constructor, args, kwargs, kw_only=True, is_method=True)
        attach(self, type(self), recorded)
        for argument in (*recorded[0], *recorded[1].values()):
            if _is_mutable(argument):
                self.add_mutable(argument)
        _warn_of_hidden(type(self), recorded)
        constructor(
            self,
            *(_value(one) for one in recorded[0]),
            **{name: _value(one) for name, one in recorded[1].items()},
        )

    return __init__


def remember_scope(module: nn.Module) -> None:
    """Record the label scope in which a module is constructed, for its construction anew.

    Args:
        module: module under construction.
    """
    scope = label_scope.current()
    if scope is not None:
        vars(module)[_SCOPE] = scope.path


def scope_at_construction(module: nn.Module) -> "label_scope | _NoScope":
    """Return the label scope in which a module was constructed, to be entered again.

    Args:
        module: module that `remember_scope` was called for.
    """
    path = vars(module).get(_SCOPE)
    return _NoScope() if path is None else label_scope(path)


class _NoScope:
    """Context manager in place of a scope, for what was constructed outside any."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _is_mutable(argument: object) -> bool:
    """Return whether an argument represents several values; a module represents itself."""
    return isinstance(argument, Mutable) and not isinstance(argument, nn.Module)


def _value(argument: Any) -> Any:  # noqa: ANN401 - any argument
    """Return a mutable argument's current or default value; lists and dicts are copied."""
    if _is_mutable(argument):
        return ensure_frozen(argument, strict=False)
    return argument.copy() if type(argument) in {list, dict} else argument


def _value_in(argument: Any, sample: Sample) -> Any:  # noqa: ANN401 - any argument
    return argument.freeze(sample) if _is_mutable(argument) else argument


def _frozen(argument: Any, sample: Sample) -> Any:  # noqa: ANN401 - any argument
    if isinstance(argument, nn.Module):
        return recursive_freeze(argument, sample)[0]
    if type(argument) in {list, tuple}:
        return type(argument)(_frozen(one, sample) for one in argument)
    if type(argument) in {dict, OrderedDict}:
        return type(argument)((key, _frozen(one, sample)) for key, one in argument.items())
    return _value_in(argument, sample)


def _warn_of_hidden(cls: type, recorded: tuple[list[Any], dict[str, Any]]) -> None:
    if current_model() is not None:
        return
    for name, argument in (*enumerate(recorded[0]), *recorded[1].items()):
        if any(_is_mutable(one) for one in _members(argument)):
            warnings.warn(
                f"argument {name!r} of {cls.__name__} holds a mutable inside a "
                f"{type(argument).__name__}, where it is not seen; pass an expression, or a "
                "choice among whole tuples",
                RuntimeWarning,
                stacklevel=4,
            )


def _members(argument: object) -> Iterator[object]:
    if isinstance(argument, tuple | list):
        yield from argument
    elif isinstance(argument, dict):
        yield from argument.values()
