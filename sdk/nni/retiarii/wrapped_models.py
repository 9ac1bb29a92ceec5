"""Networks of NNI 2.x that are decorated as a whole: `model_wrapper`."""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from torch import nn

from nni.mutable import Label, label_scope
from nni.nas.nn.pytorch import ModelSpace
from nni.retiarii.deprecation import warn_once

_C = TypeVar("_C", bound=type[nn.Module])

_space: ContextVar[ModelSpace | None] = ContextVar("_space", default=None)


class MutationLabels(label_scope):
    """Scope whose automatic labels are `_mutation_1`, `_mutation_2`, …; others have no prefix.

    Labels of scopes inside are joined by `__`.

    Examples:
        >>> from nni.mutable import auto_label
        >>> with MutationLabels():
        ...     auto_label(), auto_label("width"), auto_label()
        ('_mutation_1', 'width', '_mutation_2')
    """

    def __init__(self) -> None:
        super().__init__()
        self._path = Label("")
        self._separator = "__"

    def next_label(self) -> Label:
        """Return a label with the next number."""
        self._count += 1
        return Label(f"_mutation_{self._count}")

    def complete_label(self, name: str) -> Label:
        """Return the name itself as a label."""
        return Label(name)


_unwrapped = MutationLabels()
"""Counter of automatic labels outside any scope."""


def mutation_label(label: str | None) -> str | None:
    """Return a choice's label as given; without one and outside any scope `_mutation_<n>`.

    Args:
        label: name that the user gave, if any.
    """
    if label is None and label_scope.current() is None:
        return _unwrapped.next_label()
    return label


def space_under_construction() -> ModelSpace | None:
    """Return the wrapped network whose constructor runs; None outside of any."""
    return _space.get()


def construct(
    network: Any,  # noqa: ANN401 - of any class
    constructor: Callable[..., None],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Call the constructor of a wrapped network, with labels of its own if it is the outermost one.

    A function of this module, since a class of the main script travels by value, and so do the
    functions that it holds.

    Args:
        network: network to construct.
        constructor: constructor of the user.
        args: its positional arguments.
        kwargs: its named arguments.
    """
    if _space.get() is not None:  # the labels are those of the outermost network
        constructor(network, *args, **kwargs)
        return
    token = _space.set(network)
    try:
        with MutationLabels():
            constructor(network, *args, **kwargs)
    finally:
        _space.reset(token)


def model_wrapper(cls: _C) -> _C:
    """Return a network class whose instances are model spaces; write `class Net(ModelSpace)`.

    It belongs on the outermost network. Arguments are recorded, and automatic labels start at
    `_mutation_1` for each instance. Only the form of `super().__init__()` without arguments works.

    Args:
        cls: subclass of `torch.nn.Module`.

    Returns:
        A subclass of it and of `nni.nas.nn.pytorch.ModelSpace`; `cls` if it is such a space.

    Raises:
        TypeError: `cls` is no subclass of `torch.nn.Module`.
    """
    given: object = cls
    if not (isinstance(given, type) and issubclass(given, nn.Module)):
        raise TypeError(f"cls must be a subclass of torch.nn.Module, got {cls!r}")
    warn_once("model_wrapper", "nni.nas.nn.pytorch.ModelSpace")
    if issubclass(cls, ModelSpace):
        return cls
    constructor = cls.__init__

    @functools.wraps(constructor)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807 - of any class
        construct(self, constructor, args, kwargs)

    names = ("__module__", "__qualname__", "__doc__")
    body: dict[str, Any] = {name: getattr(cls, name) for name in names}
    return cast("_C", type(cls.__name__, (cls, ModelSpace), {**body, "__init__": __init__}))
