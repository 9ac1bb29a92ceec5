"""Record of constructor arguments: text, equality and serialization of a mutable follow from it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from nni.mutable.base import Mutable


class ConstructorRecord(ABC):
    """Mixin of mutables that their constructor's arguments define.

    It has the attributes that `nni.trace` gives its objects, so such a mutable is serialized as the
    call of its constructor. The argument `label` is a `Label`, a string whose type must survive:
    a plain string with a separator is refused.

    Examples:
        >>> from nni.mutable import Categorical
        >>> choice = Categorical([1, 2], default=2, label="a")
        >>> choice.trace_kwargs
        {'values': [1, 2], 'default': 2, 'label': 'a'}
        >>> choice.equals(choice.trace_symbol(**choice.trace_kwargs)), choice
        (True, Categorical([1, 2], default=2, label='a'))
    """

    @abstractmethod
    def constructor_arguments(self) -> dict[str, Any]:
        """Return keyword arguments that construct an equal mutable.

        Returns:
            Name to value, without arguments at their defaults.
        """

    @property
    def trace_symbol(self) -> type:
        """Class to call."""
        return type(self)

    @property
    def trace_args(self) -> tuple[()]:
        """Positional arguments: none."""
        return ()

    @property
    def trace_kwargs(self) -> dict[str, Any]:
        """Keyword arguments."""
        return self.constructor_arguments()

    def equals(self, other: object) -> bool:
        """Return whether another mutable has the same class and the same arguments."""
        return self is other or (
            isinstance(other, ConstructorRecord)
            and type(other) is type(self)
            and equal_values(self.constructor_arguments(), other.constructor_arguments())
        )

    def __repr__(self) -> str:
        arguments = self.constructor_arguments()
        first = next(iter(arguments), "")
        texts = [
            repr(value) if name == first and name in POSITIONAL else f"{name}={plain(value)!r}"
            for name, value in arguments.items()
        ]
        return f"{type(self).__name__}({', '.join(texts)})"


POSITIONAL = ("values", "mutables")
"""First arguments that texts show without their names."""


def plain(value: object) -> object:
    """Return a complete label as a plain string, anything else as it is.

    Args:
        value: argument of a constructor.

    Returns:
        What a text shows.
    """
    return str(value) if isinstance(value, str) else value


def equal_values(one: object, other: object) -> bool:
    """Return whether two values are equal; mutables inside containers are compared by structure.

    Values whose comparison has no single truth value, such as arrays, are equal if identical.

    Args:
        one: anything.
        other: anything.

    Returns:
        True if they are equal.

    Examples:
        >>> equal_values([1, {"a": (2,)}], [1, {"a": (2,)}]), equal_values(1, True)
        (True, False)
    """
    if one is other:
        return True
    if isinstance(one, Mutable):
        return one.equals(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(equal_values(one[key], other[key]) for key in one)
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    if type(one) is not type(other):
        return False
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(map(equal_values, one, other))
    try:
        return bool(one == other)
    except (RuntimeError, TypeError, ValueError):
        return False
