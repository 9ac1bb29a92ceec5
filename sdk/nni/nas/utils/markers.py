"""Markers on classes: basic units, which graphs do not look into, and wrapped models."""

from typing import Any, Final, TypeVar

from nni.common.serializer import trace

__all__ = [
    "BASIC_UNIT",
    "MODEL_WRAPPER",
    "basic_unit",
    "is_basic_unit",
    "is_model_wrapped",
]

_C = TypeVar("_C", bound=type)

BASIC_UNIT: Final = "_nni_basic_unit"
"""Attribute of a class whose instances are nodes of a graph, with constructor arguments."""
MODEL_WRAPPER: Final = "_nni_model_wrapper"
"""Attribute of a class that records how its instances were constructed, as a whole model."""


def basic_unit(cls: _C, basic_unit_tag: bool = True) -> _C:  # noqa: FBT001, FBT002 - as specified
    """Return a module class whose instances know their arguments and are nodes of a graph.

    The conversion of a model to a graph does not look inside such a module; a mutator may replace
    it, and change its arguments.

    Args:
        cls: subclass of `torch.nn.Module`.
        basic_unit_tag: False records the arguments only.

    Returns:
        The traced class; `cls` itself if it has been decorated before.

    Raises:
        TypeError: `cls` is no subclass of `torch.nn.Module`.

    Examples:
        >>> from torch import nn
        >>> @basic_unit
        ... class Shift(nn.Module):
        ...     def __init__(self, offset):
        ...         super().__init__()
        ...         self.offset = offset
        >>> Shift(3).trace_kwargs, is_basic_unit(Shift(3))
        ({'offset': 3}, True)
    """
    from torch.nn import Module

    given: object = cls
    if not (isinstance(given, type) and issubclass(given, Module)):
        raise TypeError(f"cls must be a subclass of torch.nn.Module, got {cls!r}")
    traced: Any = trace(cls)
    setattr(traced, BASIC_UNIT, basic_unit_tag)
    return traced  # type: ignore[no-any-return]  # of the class that was given


def is_basic_unit(cls_or_instance: object) -> bool:
    """Return whether a module, or class of modules, is marked as one node of a graph.

    Args:
        cls_or_instance: class of modules, or a module.

    Returns:
        True for what `basic_unit` decorated, and for parametrized modules.

    Examples:
        >>> from torch import nn
        >>> is_basic_unit(nn.Linear)
        False
    """
    return bool(getattr(_class_of(cls_or_instance), BASIC_UNIT, False))


def is_model_wrapped(cls_or_instance: object) -> bool:
    """Return whether an object is a model space, or a class of such.

    Args:
        cls_or_instance: class of modules, or a module.

    Returns:
        True for model spaces.

    Examples:
        >>> from torch import nn
        >>> is_model_wrapped(nn.Linear(1, 1))
        False
    """
    return bool(getattr(_class_of(cls_or_instance), MODEL_WRAPPER, False))


def _class_of(cls_or_instance: object) -> type:
    return cls_or_instance if isinstance(cls_or_instance, type) else type(cls_or_instance)
