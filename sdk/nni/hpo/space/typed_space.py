"""Search spaces declared by types, and configurations as objects of these types.

A dataclass, a pydantic model or a function's signature is a search space. The type of a field
states whether and how it is tuned; nested structures are part of the space, and a union of
structures is a choice of them. A structure outside a choice is flattened: its fields are named
`<field>/<inner field>`. Spaces and configurations are transported as JSON. Constraints between the
fields are the attribute `_constraints` of the outermost type or function; in a class it is a
`ClassVar`.

Examples:
    >>> from dataclasses import dataclass
    >>> from typing import Annotated, ClassVar
    >>> from nni.hpo import LogUniform, RandInt, configuration, search_space
    >>> @dataclass
    ... class Forest:
    ...     depth: Annotated[int, RandInt(2, 12)] = 6
    >>> @dataclass
    ... class Linear:
    ...     pass
    >>> @dataclass
    ... class Training:
    ...     model: Forest | Linear
    ...     rate: Annotated[float, LogUniform(1e-5, 1e-1)] = 1e-3
    ...     epochs: int = 10  # not tuned: keeps its value
    ...     _constraints: ClassVar = ["rate <= 0.05", {"_forbid": {"model/_name": "Linear"}}]
    >>> sorted(search_space(Training))
    ['_constraints', 'model', 'rate']
    >>> configuration(Training, {"model": {"_name": "Forest", "depth": 3}, "rate": 0.01})
    Training(model=Forest(depth=3), rate=0.01, epochs=10)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar, overload

from nni.hpo.json_value import JsonValue
from nni.hpo.space._hyperopt_reader import entry_of_hyperopt, has_hyperopt
from nni.hpo.space._type_reader import (
    ChoiceContent,
    Field,
    FieldOption,
    NumberContent,
    Structure,
    UntunedContent,
    is_type_of_space,
    read_structure,
)
from nni.hpo.space.domains import CONSTRAINTS_KEY, same_value
from nni.hpo.space.samplings import Choice, Range, with_prior

__all__ = ["TypedSpace", "as_json", "configuration", "is_type_of_space", "search_space"]

T = TypeVar("T")

_CONFIGSPACE: Final = "ConfigSpace"
"""Package of spaces that are converted; it need not be installed."""
_NAME: Final = "_name"
"""Key of the active branch."""


class TypedSpace:
    """Search space that a type declares.

    Args:
        source: a dataclass, a pydantic model, or a function.

    Raises:
        TypeError: the source is none of these, or a field's type breaks a rule.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import RandInt, TypedSpace
        >>> def train(depth: Annotated[int, RandInt(1, 9)], epochs: int = 10): ...
        >>> space = TypedSpace(train)
        >>> space.search_space()
        {'depth': {'_type': 'randint', '_value': [1, 9]}}
        >>> space.configuration({"depth": 3})
        {'depth': 3}
    """

    def __init__(self, source: object) -> None:
        self._structure = read_structure(source)
        self._constraints = getattr(source, CONSTRAINTS_KEY, None)

    def search_space(self) -> dict[str, JsonValue]:
        """Return the search space that the type declares, in JSON; ValueError if it is malformed.

        Returns:
            Dict of name to `{"_type": ..., "_value": [...]}`.

        Raises:
            ValueError: a range or constraint breaks a rule of search spaces.
        """
        from nni.hpo.space.parser import parse_space  # trials do not need the parser

        entries = dict(_entries(self._structure, ""))
        if self._constraints is not None:
            entries[CONSTRAINTS_KEY] = list(self._constraints)
        parse_space(entries, algorithm="typed search spaces")
        return entries

    def configuration(self, parameters: JsonValue, arguments: Sequence[str] | None = None) -> Any:  # noqa: ANN401 - the source decides
        """Return a configuration, with command-line overrides, as an object; ValueError if wrong.

        Args:
            parameters: as `nni.get_next_parameter` returned them.
            arguments: command-line arguments that override `parameters`; None: no command line.

        Returns:
            An object of the class; for a function, the arguments to call it with.

        Raises:
            ValueError: a value lies outside the type, or is missing and has no default.
            SystemExit: the command line is wrong, or asks for help.
        """
        if not isinstance(parameters, Mapping):
            raise ValueError(f"a configuration must be a dict, got {parameters!r:.200}")  # noqa: TRY004 - one type for all faults of an input
        if arguments is not None:
            from nni.hpo.space._command_line import with_arguments

            parameters = with_arguments(self._structure, parameters, arguments)
        return _build(self._structure, parameters, "", "")


def search_space(source: object) -> dict[str, JsonValue]:
    """Return the search space that a type declares, in JSON.

    Args:
        source: a dataclass, a pydantic model, or a function, whose arguments are then tuned.
            `Annotated[..., Choice() | RandInt() | Uniform() | ...]` marks a tuned field;
            a field without it needs a default, and keeps it.

    Returns:
        Dict of name to `{"_type": ..., "_value": [...]}`.

    Raises:
        TypeError: the source is none of these, or a field's type breaks a rule.
        ValueError: a range breaks a rule of search spaces, as in `Uniform(1, 0)`.

    Examples:
        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> from nni.hpo import LogUniform, search_space
        >>> @dataclass
        ... class Training:
        ...     rate: Annotated[float, LogUniform(0.001, 0.1)] = 0.01
        ...     epochs: int = 10
        >>> search_space(Training)
        {'rate': {'_type': 'loguniform', '_value': [0.001, 0.1]}}
    """
    return TypedSpace(source).search_space()


def as_json(space: JsonValue) -> JsonValue:
    """Return a search space in JSON, given as JSON or as a type; raises as `search_space` does."""
    return search_space(space) if is_type_of_space(space) else with_entries(space)


def with_entries(space: JsonValue) -> JsonValue:
    """Return a search space in JSON, given with samplings such as `Uniform(0, 1)` as objects.

    Also converts a `ConfigSpace.ConfigurationSpace`, and a dict of hyperopt's expressions.

    Raises:
        ValueError: a part of such a space has no equivalent.
    """
    if type(space).__module__.partition(".")[0] == _CONFIGSPACE:
        from nni.hpo.space._configspace_reader import from_configspace  # needs the parser

        return from_configspace(space)
    if not isinstance(space, Mapping):
        return space
    if has_hyperopt(space):
        return {key: _entry_beside_hyperopt(key, value) for key, value in space.items()}
    return {key: _sampling_entry(value) for key, value in space.items()}


def _entry_beside_hyperopt(key: str, value: JsonValue) -> JsonValue:
    return value if key == CONSTRAINTS_KEY else entry_of_hyperopt(key, _sampling_entry(value))


def _sampling_entry(value: JsonValue) -> JsonValue:
    if isinstance(value, Range):
        return value.entry()
    if isinstance(value, Choice):
        options = [with_entries(option) for option in value.options]
        return with_prior({"_type": "choice", "_value": options}, value.prior)
    return value


@overload
def configuration(
    source: type[T], parameters: JsonValue, arguments: Sequence[str] | None = None
) -> T: ...
@overload
def configuration(
    source: Callable[..., Any], parameters: JsonValue, arguments: Sequence[str] | None = None
) -> dict[str, Any]: ...
def configuration(
    source: Any, parameters: JsonValue, arguments: Sequence[str] | None = None
) -> Any:
    """Return a configuration as an object of the type that declared its space.

    Args:
        source: the argument of `search_space`.
        parameters: return value of `nni.get_next_parameter`. Missing fields take their defaults,
            so that `{}`, which a trial outside an experiment gets, means all defaults. Keys that
            the type does not have, such as those that an advisor adds, are ignored.
        arguments: command-line arguments such as `sys.argv[1:]`, which override `parameters`: an
            option for each field, as in `--rate 0.01 --model Svm --model/Svm/c 3`. None: no
            command line.

    Returns:
        An object of the class; for a function, the arguments to call it with. Numbers have the
        declared type, options are the objects in the declaration.

    Raises:
        ValueError: a value lies outside the type, or is missing and has no default.
        SystemExit: the command line is wrong, or asks for help.

    Examples:
        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> from nni.hpo import LogUniform, configuration
        >>> @dataclass
        ... class Training:
        ...     rate: Annotated[float, LogUniform(0.001, 0.1)] = 0.01
        ...     epochs: int = 10
        >>> configuration(Training, {"rate": 0.05})
        Training(rate=0.05, epochs=10)
        >>> configuration(Training, {"rate": 0.05}, ["--epochs", "2"])
        Training(rate=0.05, epochs=2)
    """
    return TypedSpace(source).configuration(parameters, arguments)


def _entries(structure: Structure, prefix: str) -> Iterator[tuple[str, JsonValue]]:
    for field in structure.fields:
        key = prefix + field.name
        content = field.content
        if isinstance(content, Structure):
            yield from _entries(content, f"{key}/")
        elif isinstance(content, NumberContent):
            yield key, content.range.entry()
        elif isinstance(content, ChoiceContent):
            values = [_option_entry(option) for option in content.options]
            yield key, with_prior({"_type": "choice", "_value": values}, content.prior)


def _option_entry(option: FieldOption) -> JsonValue:
    if option.branch is None:
        return option.wire
    return {_NAME: option.wire, **dict(_entries(option.branch, ""))}


def _build(structure: Structure, parameters: Mapping[str, Any], prefix: str, place: str) -> Any:  # noqa: ANN401 - an object of the user's class
    """Construct the object of a structure and those in it from parameters; ValueError if some lack.

    Args:
        structure: description of the class or function.
        parameters: values of this level of the configuration.
        prefix: prefix of the structure's keys in the level.
        place: path of the level in the whole configuration, for errors.
    """
    values: dict[str, Any] = {}
    for field in structure.fields:
        key = prefix + field.name
        if isinstance(field.content, Structure):
            given = any(name.startswith(f"{key}/") for name in parameters)
            if given or not field.has_default:
                values[field.argument] = _build(field.content, parameters, f"{key}/", place)
        elif key in parameters:
            values[field.argument] = _value(field, parameters[key], place + key)
        elif not field.has_default:
            raise ValueError(
                f"parameter {place + key!r} must have a value or, in {structure.name}, a default"
            )
    return structure.build(values)


def _value(field: Field, value: JsonValue, path: str) -> object:
    content = field.content
    if isinstance(content, ChoiceContent):
        return _option_value(content, value, path)
    if isinstance(content, NumberContent):
        return value if content.type is None else _number(value, content.type, path)
    assert isinstance(content, UntunedContent)
    return _plain(value, content.hint, path)


def _option_value(content: ChoiceContent, value: JsonValue, path: str) -> object:
    name = value.get(_NAME) if isinstance(value, Mapping) else None
    for option in content.options:
        if option.branch is not None:
            if name == option.wire:
                return _build(option.branch, value, "", f"{path}/{name}/")
        elif same_value(option.wire, value):
            return option.value
    shown = ", ".join(repr(option.wire) for option in content.options)
    raise ValueError(f"parameter {path!r} must be one of {shown}; got {value!r:.200}")


def _number(value: JsonValue, wanted: type[int] | type[float], path: str) -> float:
    """Return a number in its declared type, 7.0 as the int 7; ValueError for other values."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (wanted is int and not float(value).is_integer()):
        raise ValueError(f"parameter {path!r} must be of type {wanted.__name__}, got {value!r}")
    return wanted(value)


def _plain(value: JsonValue, hint: object, path: str) -> object:
    """Convert a value given for an untuned field to the field's number or enum type."""
    if hint is int or hint is float:
        return _number(value, hint, path)
    if isinstance(hint, type) and issubclass(hint, Enum) and isinstance(value, str):
        return hint[value] if value in hint.__members__ else hint(value)
    return value
