"""Checks of the arguments that an experiment's configuration gives to an algorithm.

Standard library only: trial code may import `nni.ClassArgsValidator`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from nni.hpo.json_value import JsonValue

Checker: TypeAlias = Callable[[JsonValue], bool]
"""Returns true for a valid value and raises ValueError for any other."""


class ClassArgsValidator:
    """Base of the validators of registered algorithms.

    `choices` and `range` make checkers that are plain callables, so they also work as values in a
    schema of the `schema` package.

    Example:
        ```python
        class DemoValidator(ClassArgsValidator):
            def validate_class_args(self, **kwargs):
                self.choices("optimize_mode", "maximize", "minimize")(kwargs["optimize_mode"])
        ```
    """

    def validate_class_args(self, **kwargs: object) -> None:
        """Check all arguments, before the experiment starts; the default accepts them.

        Args:
            **kwargs: `classArgs` of the configuration.

        Raises:
            Exception: of any type, to reject; its text is shown to the user.
        """

    def choices(self, key: str, *allowed: JsonValue) -> Checker:
        """Return a checker that accepts only `allowed`; `key` names the argument in errors."""

        def check(value: JsonValue) -> bool:
            if any(value == item and type(value) is type(item) for item in allowed):
                return True
            words = ", ".join(repr(item) for item in allowed)
            raise ValueError(f"{key} must be one of {words}; got {value!r}")

        return check

    def range(self, key: str, keytype: type, start: float, end: float) -> Checker:
        """Return a checker for numbers of type `keytype` in `[start, end]`, both ends included.

        Ints pass for floats; bools pass for nothing.
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
        """Return a checker for file paths: any non-empty string."""

        def check(value: JsonValue) -> bool:
            if isinstance(value, str) and value:
                return True
            raise ValueError(f"{key} must be a path, got {value!r}")

        return check


def check_whole(name: str, value: object, *, least: int) -> bool:
    """Return true for a whole number that is at least `least`, else raise ValueError.

    Floats pass, as 1e5 is one; `name` is for the text.
    """
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if numeric and math.isfinite(value) and value == int(value) and value >= least:  # type: ignore[arg-type,call-overload,operator] # numeric
        return True
    raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")


def check_count(name: str, value: object, *, least: int) -> None:
    """Raise ValueError unless `value` is an int, and at least `least`; `name` is for the text."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an int >= {least}, got {value!r}")


def _is_bool(key: str) -> Checker:
    def check(value: JsonValue) -> bool:
        if isinstance(value, bool):
            return True
        raise ValueError(f"{key} must be true or false, got {value!r}")

    return check


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """What one constructor argument of a built-in algorithm may be."""

    checker: Checker
    """Raises ValueError for what is refused."""

    required: bool = False
    """Whether leaving the argument out is an error."""

    nullable: bool = False
    """Whether None is accepted as well."""


class TableValidator(ClassArgsValidator):
    """Checks arguments against a table and refuses unknown ones."""

    def __init__(self, algorithm: str, rules: Mapping[str, ArgumentRule]) -> None:
        self._algorithm = algorithm
        self._rules = dict(rules)

    def validate_class_args(self, **kwargs: object) -> None:
        """See the base.

        Raises:
            ValueError: an argument is unknown, missing or out of its range.
        """
        for key, value in kwargs.items():
            rule = self._rules.get(key)
            if rule is None:
                known = ", ".join(self._rules) or "none"
                raise ValueError(
                    f"classArgs of {self._algorithm}: unknown argument {key!r}; known: {known}"
                )
            if value is None and rule.nullable:
                continue
            try:
                rule.checker(value)
            except ValueError as error:
                raise ValueError(f"classArgs of {self._algorithm}: {error}") from error
        for key, rule in self._rules.items():
            if rule.required and key not in kwargs:
                raise ValueError(f"classArgs of {self._algorithm}: {key!r} is required")


_MAKE = ClassArgsValidator()

OPTIMIZE_MODE = ArgumentRule(_MAKE.choices("optimize_mode", "maximize", "minimize"))
"""Rule of the argument that nearly all algorithms share."""

SEED = ArgumentRule(_MAKE.range("seed", int, 0, 2**63 - 1), nullable=True)
"""Rule of the extra argument of every random algorithm."""


def one_of(key: str, *allowed: object) -> ArgumentRule:
    """Return the rule that `key` is one of `allowed`."""
    return ArgumentRule(_MAKE.choices(key, *allowed))


def boolean(key: str) -> ArgumentRule:
    """Return the rule that `key` is true or false."""
    return ArgumentRule(_is_bool(key))


def number(key: str, keytype: type, start: float, end: float) -> ArgumentRule:
    """Return the rule that `key` is a number of `keytype` in `[start, end]`."""
    return ArgumentRule(_MAKE.range(key, keytype, start, end))


def whole(key: str, least: int) -> ArgumentRule:
    """Return the rule that `key` is a whole number, perhaps written 1e5, of at least `least`."""
    return ArgumentRule(lambda value: check_whole(key, value, least=least))


def path(key: str) -> ArgumentRule:
    """Return the rule that `key` is a path, or None."""
    return ArgumentRule(_MAKE.path(key), nullable=True)


def required(rule: ArgumentRule) -> ArgumentRule:
    """Return the same rule for an argument that must be given."""
    return replace(rule, required=True)


def nullable(rule: ArgumentRule) -> ArgumentRule:
    """Return the same rule for an argument that may be None."""
    return replace(rule, nullable=True)


def positive_numbers(key: str) -> ArgumentRule:
    """Return the rule that `key` is a list of positive finite numbers that is not empty."""
    return ArgumentRule(lambda value: check_positive_numbers(key, value))


def check_positive_numbers(name: str, value: object) -> bool:
    """Return true for a list of positive finite numbers that is not empty, else raise ValueError.

    Args:
        name: for the text of the error.
        value: what was given.
    """
    if isinstance(value, list | tuple) and value and all(map(_is_positive, value)):
        return True
    raise ValueError(f"{name} must be a non-empty list of positive numbers, got {value!r}")


def _is_positive(item: JsonValue) -> bool:
    numeric = isinstance(item, int | float) and not isinstance(item, bool)
    return numeric and 0 < item < math.inf
