"""Rules for the arguments of algorithms, written as annotations of the constructor's parameters.

A rule stands once, in the signature, and is applied twice: by the constructor, and by the check of
a configuration, which reads it from the generated table without importing the algorithm. Both
raise the same message: name, rule, value, remedy.

Standard library only, so that a configuration is checked without numpy.

Examples:
    >>> from typing import Annotated
    >>> class Search:
    ...     def __init__(
    ...         self, size: Annotated[int, IntRange(1, 99)] = 32, seed: Seed = None
    ...     ) -> None: ...
    >>> arguments = arguments_of(Search)
    >>> [(argument.name, argument.type, argument.range) for argument in arguments]
    [('size', 'int', 'in [1, 99]'), ('seed', 'int', 'in [0, 9223372036854775807], or None')]
    >>> check_arguments(arguments, {"size": 100})
    Traceback (most recent call last):
    ValueError: size must be an int in [1, 99], got 100; leave it out for 32
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import (
    Annotated,
    Final,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from nni.hpo.json_value import JsonValue
from nni.hpo.registry.cost_arguments import cost_hint
from nni.hpo.registry.rules import (
    MANY,
    AnyValue,
    Boolean,
    FloatRange,
    IntAbove,
    IntRange,
    OneOf,
    Rule,
    Text,
)
from nni.hpo.registry.validation import ClassArgsValidator


@dataclass(frozen=True, slots=True)
class Fields:
    """Rule: the argument is a dict whose keys are some of several arguments with own rules."""

    arguments: "tuple[Argument, ...]"

    type = "dict"

    @property
    def range(self) -> str:
        """Text `keys a, b`: names of the arguments that the dict may have."""
        return "keys " + ", ".join(argument.name for argument in self.arguments)

    @property
    def text(self) -> str:
        """Text of the rule in an error, after `must be`: `a dict with keys a, b`."""
        return f"a dict with {self.range}"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is a mapping; `Argument.check` checks the values of its keys."""
        del others
        return isinstance(value, Mapping)


class _Required:
    """Type of the constant `REQUIRED`, which marks arguments without a default."""

    def __repr__(self) -> str:
        """Return `REQUIRED`."""
        return "REQUIRED"


REQUIRED: Final = _Required()
"""Default of an argument without one."""

IN_CONFIGURATIONS: Final = "required in configurations"
"""Mark of an argument that configurations must give, although the constructor has a default."""

Mode: TypeAlias = Annotated[str, OneOf("maximize", "minimize")]
"""Annotation of the argument that nearly all algorithms share."""

Seed: TypeAlias = Annotated[int | None, IntRange(0, 2**63 - 1)]
"""Annotation of the extra argument of every random algorithm."""


@dataclass(frozen=True, slots=True)
class Argument:
    """Name, rule, default and meaning of one constructor argument."""

    name: str
    rule: Rule
    default: object = REQUIRED
    meaning: str = ""
    """From the `Args` section of the class's docstring."""
    nullable: bool = False
    """True if None is accepted as well."""
    required: bool = False
    """True if a configuration must give it."""

    @property
    def type(self) -> str:
        """Name of the rule's type, such as `int`."""
        return self.rule.type

    @property
    def range(self) -> str:
        """Text of the rule's range, with `or None` if nullable; empty if there is none."""
        return ", or ".join(filter(None, (self.rule.range, "None" if self.nullable else "")))

    def check(self, value: object, others: Mapping[str, object], prefix: str = "") -> None:
        """Raise ValueError with the rule and a remedy unless the argument accepts `value`.

        Args:
            value: the argument's value.
            others: values of all arguments, defaults included, by name.
            prefix: what stands before the name in an error.
        """
        if value is None and self.nullable:
            return
        if self.rule.accepts(value, others):
            if isinstance(self.rule, Fields) and isinstance(value, Mapping):
                check_arguments(self.rule.arguments, value, prefix=f"{self.name}.")
            return
        text = self.rule.text
        if isinstance(self.rule, IntAbove):
            text += f" = {others[self.rule.other]!r}"
        if self.nullable:
            text += ", or None"
        raise ValueError(f"{prefix}{self.name} must be {text}, got {value!r:.200}{self._remedy()}")

    def _remedy(self) -> str:
        hint: str = getattr(self.rule, "hint", "")
        if hint:
            return f"; {hint}"
        return (
            ""
            if self.required or self.default is REQUIRED
            else f"; leave it out for {self.default!r}"
        )


def arguments_of(cls: type) -> tuple[Argument, ...]:
    """Return the arguments of a class's constructor, from its annotations and docstring.

    Args:
        cls: has an `__init__` whose parameters are annotated; `Annotated[int, IntRange(1, 9)]`
            carries a rule, a plain `bool`, `int`, `float` or `str` stands for its type.
    """
    init: Callable[..., object] = inspect.unwrap(cls.__init__)  # type: ignore[misc] # only read
    hints = get_type_hints(init, include_extras=True)
    meanings = dict(_meanings(inspect.getdoc(cls) or ""))
    _, *parameters = inspect.signature(init).parameters.values()
    return tuple(
        _argument(parameter, hints.get(parameter.name, object), meanings)
        for parameter in parameters
        if parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    )


def fields_of(cls: type) -> Fields:
    """Return the rule of a dict whose keys are constructor arguments of a class."""
    return Fields(arguments_of(cls))


def _argument(parameter: inspect.Parameter, hint: object, meanings: Mapping[str, str]) -> Argument:
    rule, nullable, marked = _rule_of(hint)
    without = parameter.default is inspect.Parameter.empty
    return Argument(
        parameter.name,
        rule,
        default=REQUIRED if without else parameter.default,
        meaning=meanings.get(parameter.name, ""),
        nullable=nullable,
        required=without or marked,
    )


_RULES: Final[Mapping[object, Rule]] = {
    bool: Boolean(),
    int: IntRange(-MANY, MANY),
    float: FloatRange(),
    str: Text(),
}


def _rule_of(hint: object) -> tuple[Rule, bool, bool]:
    """Return the rule of an annotation, whether None passes, and whether it is marked required."""
    metadata: tuple[object, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *extra = get_args(hint)
        metadata = tuple(extra)
    nullable = False
    if get_origin(hint) in {Union, UnionType}:
        parts = [part for part in get_args(hint) if part is not NoneType]
        nullable = len(parts) < len(get_args(hint))
        hint = parts[0] if len(parts) == 1 else object
    rules = [item for item in metadata if hasattr(item, "accepts")]
    rule: JsonValue = rules[0] if rules else _RULES.get(hint, AnyValue())
    return rule, nullable, IN_CONFIGURATIONS in metadata


def _meanings(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each entry in the `Args` section of a Google-style docstring."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)+)", docstring, re.MULTILINE)
    if section is None:
        return
    for entry in re.finditer(r"^ {4}(\w+): ((?:.*\n?)(?:^ {5,}.*\n?)*)", section[1], re.MULTILINE):
        yield entry[1], " ".join(entry[2].split())


def check_arguments(
    arguments: Sequence[Argument],
    given: Mapping[str, object],
    *,
    configuration: bool = False,
    prefix: str = "",
) -> None:
    """Raise ValueError for an unknown argument, a broken rule, or one a configuration lacks.

    Args:
        arguments: of the algorithm.
        given: value by name.
        configuration: whether `given` comes from a configuration, where some arguments are
            required that have a default in the constructor.
        prefix: what stands before the names in errors.
    """
    known = {argument.name: argument for argument in arguments}
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            near = f"; did you mean {prefix + close[0]!r}?" if close else ""
            hint = cost_hint(name) or near
            names = ", ".join(known) or "none"
            raise ValueError(f"unknown argument {f'{prefix}{name}'!r}; known: {names}{hint}")
    values = {argument.name: argument.default for argument in arguments} | dict(given)
    for argument in arguments:
        if argument.name in given:
            argument.check(given[argument.name], values, prefix)
        elif configuration and argument.required:
            raise ValueError(f"{argument.name!r} is required: {argument.rule.text}")
    for argument in arguments:
        # A default can break a rule that depends on another argument.
        if argument.name not in given and isinstance(argument.rule, IntAbove):
            argument.check(argument.default, values, prefix)


class DeclaredArguments(ClassArgsValidator):
    """Check of `classArgs` against the declared arguments of an algorithm.

    Args:
        algorithm: its name, for errors.
        arguments: all arguments of its constructor.
        check: `module:function` that is called with the values of all arguments, defaults included,
            and raises ValueError for what no rule can say; empty for none.
    """

    def __init__(self, algorithm: str, arguments: tuple[Argument, ...], check: str = "") -> None:
        self.algorithm = algorithm
        self.arguments = arguments
        self.check = check

    def __eq__(self, other: object) -> bool:
        """Return whether another declaration has the same content."""
        return isinstance(other, DeclaredArguments) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Return a hash of the algorithm's name."""
        return hash(self.algorithm)

    def validate_class_args(self, **kwargs: object) -> None:
        """Raise ValueError unless the arguments in a configuration keep all declared rules.

        Raises:
            ValueError: an argument is unknown, missing or out of its range.
        """
        try:
            self.validate(kwargs, configuration=True)
        except ValueError as error:
            raise ValueError(f"classArgs of {self.algorithm}: {error}") from error

    def validate(self, given: Mapping[str, object], *, configuration: bool = False) -> None:
        """Raise ValueError unless the given arguments keep all rules and the algorithm's own check.

        Args:
            given: value by name.
            configuration: see `check_arguments`.
        """
        check_arguments(self.arguments, given, configuration=configuration)
        if self.check:
            module, _, function = self.check.partition(":")
            defaults = {argument.name: argument.default for argument in self.arguments}
            getattr(importlib.import_module(module), function)(**defaults | dict(given))
