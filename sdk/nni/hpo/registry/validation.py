"""Base of validators of `classArgs`, and checks of counts.

Standard library only: trial code may import `nni.ClassArgsValidator`.
"""

from collections.abc import Callable
from typing import TypeAlias

from nni.hpo.json_value import JsonValue

Checker: TypeAlias = Callable[[JsonValue], bool]
"""Returns true for a valid value and raises ValueError for any other."""


class ClassArgsValidator:
    """Base of the validators of registered algorithms' arguments, with checkers to use.

    `choices` and `range` make checkers that are plain callables, so they also work as values in a
    schema of the `schema` package.

    Examples:
        >>> from nni import ClassArgsValidator
        >>> class MyValidator(ClassArgsValidator):
        ...     def validate_class_args(self, **kwargs):
        ...         self.choices("optimize_mode", "maximize", "minimize")(kwargs["optimize_mode"])
        ...         self.range("rate", float, 0.0, 1.0)(kwargs.get("rate", 0.1))
        >>> MyValidator().validate_class_args(optimize_mode="maximize", rate=2)
        Traceback (most recent call last):
        ValueError: rate must lie in [0.0, 1.0], got 2
    """

    def validate_class_args(self, **kwargs: object) -> None:
        """Check all arguments, before the experiment starts; the default accepts them.

        Args:
            **kwargs: `classArgs` of the configuration.

        Raises:
            Exception: of any type, to reject; its text is shown to the user.
        """

    def choices(self, key: str, *allowed: JsonValue) -> Checker:
        """Return a checker: True for one of the values, of its type; ValueError for any other.

        Args:
            key: name of the argument, for errors.
            *allowed: the accepted values.

        Returns:
            Callable that returns true for an accepted value and raises ValueError for any other.
        """

        def check(value: JsonValue) -> bool:
            if any(value == item and type(value) is type(item) for item in allowed):
                return True
            words = ", ".join(repr(item) for item in allowed)
            raise ValueError(f"{key} must be one of {words}; got {value!r}")

        return check

    def range(self, key: str, keytype: type, start: float, end: float) -> Checker:
        """Return a checker: True for numbers of a type in `[start, end]`; ValueError for others.

        Args:
            key: name of the argument, for errors.
            keytype: `int` or `float`. Ints pass for floats; bools pass for nothing.
            start: smallest accepted value.
            end: largest accepted value.

        Returns:
            Callable that returns true for an accepted value and raises ValueError for any other.
        """

        def check(value: JsonValue) -> bool:
            numeric = isinstance(value, keytype) or (keytype is float and isinstance(value, int))
            if not numeric or isinstance(value, bool):
                raise ValueError(f"{key} must be of type {keytype.__name__}, got {value!r}")
            if not start <= value <= end:
                raise ValueError(f"{key} must lie in [{start}, {end}], got {value!r}")
            return True

        return check

    def path(self, key: str) -> Checker:
        """Return a checker: True for any non-empty string as a path; ValueError for others.

        Args:
            key: name of the argument, for errors.

        Returns:
            Callable that returns true for a path and raises ValueError for any other value.
        """

        def check(value: JsonValue) -> bool:
            if isinstance(value, str) and value:
                return True
            raise ValueError(f"{key} must be a path, got {value!r}")

        return check


def check_count(name: str, value: object, *, least: int) -> None:
    """Raise ValueError unless `value` is an int, and at least `least`; errors say `name`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an int >= {least}, got {value!r}")
