"""Record of constructor arguments: text, equality and serialization of a mutable follow from it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from nni.mutable.base import Mutable
from nni.mutable.labels import Label

_TUPLE: Final = "__tuple__"
_OLD_TUPLE: Final = "__nni_tuple__"
"""Mark of tuples in samples that earlier versions have written."""
_ITEMS: Final = "__items__"
_MARKS: Final = frozenset({_TUPLE, _OLD_TUPLE, _ITEMS})


class ConstructorRecord(ABC):
    """Mixin of mutables that their constructor's arguments define.

    `nni.dump` writes the class and the arguments, and no pickle. The argument `label` is a `Label`:
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
        """Class whose constructor makes an equal mutable."""
        return type(self)

    @property
    def trace_args(self) -> tuple[()]:
        """Positional arguments: none."""
        return ()

    @property
    def trace_kwargs(self) -> dict[str, Any]:
        """Keyword arguments that construct an equal mutable."""
        return self.constructor_arguments()

    def _dump(self) -> dict[str, Any]:
        """Return the constructor's arguments, marked for JSON, which `nni.dump` writes."""
        return {name: marked(value) for name, value in self.constructor_arguments().items()}

    @classmethod
    def _load(cls, **arguments: Any) -> Self:  # noqa: ANN401 - those of the constructor
        """Return the mutable whose `_dump` has been read."""
        restored = {name: unmarked(value) for name, value in arguments.items()}
        if "label" in restored:
            restored["label"] = Label(restored["label"])
        return cls(**restored)

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


def marked(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return a copy with marks for tuples and odd-keyed dicts, which `unmarked` reads after JSON.

    Args:
        value: argument of a mutable.

    Returns:
        The value, with marks in place of tuples, and of dictionaries whose keys are no strings.

    Examples:
        >>> marked([(3, 3), {1: "one"}])
        [{'__tuple__': [3, 3]}, {'__items__': [[1, 'one']]}]
        >>> unmarked(marked([(3, 3), {1: "one"}]))
        [(3, 3), {1: 'one'}]
    """
    if type(value) is tuple:
        return {_TUPLE: [marked(one) for one in value]}
    if type(value) is list:
        return [marked(one) for one in value]
    if type(value) is not dict:
        return value
    if all(isinstance(key, str) for key in value) and not _MARKS & value.keys():
        return {key: marked(one) for key, one in value.items()}
    return {_ITEMS: [[marked(key), marked(one)] for key, one in value.items()]}


def unmarked(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return the value that `marked` was called with.

    Args:
        value: result of `marked`, or of the same function of an earlier version, after JSON.

    Returns:
        The value.
    """
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_TUPLE} or value.keys() == {_OLD_TUPLE}:
        return tuple(unmarked(one) for items in value.values() for one in items)
    if value.keys() == {_ITEMS}:
        return {unmarked(key): unmarked(one) for key, one in value[_ITEMS]}
    return {key: unmarked(one) for key, one in value.items()}


def equal_values(one: object, other: object) -> bool:
    """Return whether values of one type are equal, order of dicts included; mutables by form.

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
