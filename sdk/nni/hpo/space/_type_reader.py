"""Reader of types: tuned fields with their samplings, and construction of objects."""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin
from typing import get_type_hints as read_hints

from nni.hpo.json_value import JsonValue
from nni.hpo.space.samplings import Choice, Range

_SCALARS: Final = (bool, int, float, str)
_UNIONS: Final = (Union, types.UnionType)


@dataclass(frozen=True, slots=True)
class UntunedContent:
    """Content of a field that is not tuned."""

    hint: Any
    """Type of the field."""


@dataclass(frozen=True, slots=True)
class NumberContent:
    """Content of a field that is a tuned number."""

    range: Range
    type: type[int] | type[float] | None
    """Type that values are converted to; None for no conversion."""


@dataclass(frozen=True, slots=True)
class FieldOption:
    """Option of a choice: its JSON value, Python value, and structure if it is a branch."""

    wire: JsonValue
    """JSON value in search space and configuration; for a branch its `_name`."""
    value: object
    """Python value; for a branch its class."""
    branch: "Structure | None" = None


@dataclass(frozen=True, slots=True)
class ChoiceContent:
    """Content of a field that is a tuned choice."""

    options: tuple[FieldOption, ...]
    prior: JsonValue = None
    """User prior in JSON; None for none."""


@dataclass(frozen=True, slots=True)
class Field:
    """Field of a structure, with its type and default."""

    name: str
    """Name in the search space and in the code."""
    argument: str
    """Key of its value in the argument of `Structure.build`."""
    has_default: bool
    content: "Content"


@dataclass(frozen=True, slots=True)
class Structure:
    """Description of a dataclass, a pydantic model, or the signature of a function."""

    name: str
    fields: tuple[Field, ...]
    build: Callable[[dict[str, Any]], Any]
    """Constructor of an object from values by argument; those with a default may be missing."""

    def is_tuned(self) -> bool:
        """Return whether any field is tuned, those of nested structures included."""
        return any(
            field.content.is_tuned()
            if isinstance(field.content, Structure)
            else not isinstance(field.content, UntunedContent)
            for field in self.fields
        )


Content: TypeAlias = UntunedContent | NumberContent | ChoiceContent | Structure
"""Content of a field; a `Structure` is a nested one with fields of its own."""


def is_type_of_space(source: object) -> bool:
    """Return whether a search space is given as a type or a function, and not as JSON."""
    return callable(source)


def read_structure(source: object, above: tuple[object, ...] = ()) -> Structure:
    """Return the description of a dataclass, pydantic model or function; TypeError for others.

    Args:
        source: the class or function.
        above: the enclosing classes, outermost first.

    Raises:
        TypeError: the source is none of these, or a field breaks a rule; the message names both.
    """
    if source in above:
        raise TypeError(f"{_name(source)} must not contain itself; a search space is finite")
    parts, build = _parts(source)
    fields = []
    for name, argument, hint, has_default in parts:
        place = f"{_name(source)}.{name}"
        content = _content(hint, place, (*above, source))
        if isinstance(content, UntunedContent) and not has_default:
            raise TypeError(
                f"{place} must have a default, or say how it is tuned, for example "
                "Annotated[float, Uniform(0, 1)] or Annotated[bool, Choice()]"
            )
        fields.append(Field(name, argument, has_default, content))
    return Structure(_name(source), tuple(fields), build)


_Part: TypeAlias = tuple[str, str, Any, bool]
"""Name, argument, type hint, and whether there is a default."""


def _parts(source: Any) -> tuple[Iterator[_Part], Callable[[dict[str, Any]], Any]]:  # noqa: ANN401 - any argument of a user
    """Return fields and constructor of a dataclass, pydantic model or function; else raise."""
    if dataclasses.is_dataclass(source) and isinstance(source, type):
        return _dataclass_parts(source), lambda values: source(**values)
    if _is_model(source):
        return _model_parts(source), source.model_validate
    if callable(source) and not isinstance(source, type):
        return _function_parts(source), dict
    raise TypeError(
        "a typed search space must be a dataclass, a pydantic model or a function, "
        f"got {source!r:.200}"
    )


def _name(source: object) -> str:
    if isinstance(source, functools.partial):
        return _name(source.func)
    return getattr(source, "__name__", type(source).__name__)


def _is_model(source: object) -> bool:
    """Return whether `source` is a pydantic model, without importing pydantic."""
    return (
        isinstance(source, type)
        and hasattr(source, "model_fields")
        and hasattr(source, "model_validate")
    )


def _is_structure(hint: object) -> bool:
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or _is_model(hint))


def _hints(source: type) -> Mapping[str, Any]:
    try:
        return read_hints(source, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"the type hints of {_name(source)} must be known at the top of its module: {error}"
        ) from error


def _dataclass_parts(source: type) -> Iterator[_Part]:
    hints = _hints(source)
    for field in dataclasses.fields(source):
        if field.init:
            missing = dataclasses.MISSING
            has_default = field.default is not missing or field.default_factory is not missing
            yield field.name, field.name, hints[field.name], has_default


def _model_parts(source: Any) -> Iterator[_Part]:  # noqa: ANN401 - a pydantic model
    hints = _hints(source)
    for name, field in source.model_fields.items():
        alias = field.validation_alias
        argument = alias if isinstance(alias, str) else name
        yield name, argument, hints[name], not field.is_required()


def _function_parts(source: Callable[..., Any]) -> Iterator[_Part]:
    try:
        parameters = inspect.signature(source, eval_str=True).parameters.values()
    except NameError as error:
        raise TypeError(
            f"the type hints of {_name(source)} must be known at the top of its module: {error}"
        ) from error
    fixed = source.keywords if isinstance(source, functools.partial) else {}
    for parameter in parameters:
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        if parameter.name in fixed:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"{_name(source)}.{parameter.name} must not be positional-only: values are "
                "passed by name"
            )
        hint = Any if parameter.annotation is parameter.empty else parameter.annotation
        yield parameter.name, parameter.name, hint, parameter.default is not parameter.empty


def _content(hint: Any, place: str, above: tuple[object, ...]) -> Content:  # noqa: ANN401 - a type hint
    base, sampling = _split(hint, place)
    if isinstance(sampling, Range):
        return _numbers(base, sampling, place)
    if isinstance(sampling, Choice):
        values = sampling.options or _own_values(base, place)
        content = _options(base, values, place, above)
        return replace(content, prior=_wire_prior(sampling.prior, content.options))
    members = _members(base)
    for member in members:
        if get_origin(member) is Annotated and _split(member, place)[1] is not None:
            raise TypeError(
                f"{place} must have Annotated around its whole type, as in "
                f"Annotated[float | None, ...], got {base}"
            )
    structures = [member for member in members if _is_structure(member)]
    if structures and all(one in structures or one is types.NoneType for one in members):
        first = read_structure(structures[0], above)
        if len(members) == 1:
            return first
        if len(structures) > 1 or first.is_tuned():
            return _options(base, _own_values(base, place), place, above)
    return UntunedContent(base)


def _split(hint: Any, place: str) -> tuple[Any, Range | Choice | None]:  # noqa: ANN401 - a type hint
    """Return type and sampling, or None, of `Annotated[type, sampling]`; TypeError if several."""
    if get_origin(hint) is not Annotated:
        return hint, None
    base, *beside = get_args(hint)
    found = [item for item in beside if isinstance(item, Range | Choice)]
    if len(found) > 1:
        raise TypeError(f"{place} must be tuned in one way, got {found}")
    wrong = [item for item in beside if isinstance(item, type) and issubclass(item, Range | Choice)]
    if wrong:
        raise TypeError(f"{place} must have {wrong[0].__name__}(...) with its arguments")
    return base, found[0] if found else None


def _members(hint: object) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in _UNIONS else (hint,)


def _numbers(base: object, sampling: Range, place: str) -> NumberContent:
    members = [member for member in _members(base) if member is not types.NoneType]
    if members == [Any]:
        return NumberContent(sampling, None)
    if float in members:
        return NumberContent(sampling, float)
    if int not in members:
        raise TypeError(f"{place} must be int or float for {sampling}, got {base}")
    if not sampling.is_integral():
        raise TypeError(f"{place} must be float: {sampling} gives fractions")
    return NumberContent(sampling, int)


def _own_values(base: object, place: str) -> tuple[object, ...]:
    """Return the values that a type lists, such as Literal or Enum; raise TypeError for others."""
    values: list[object] = []
    for member in _members(base):
        if member is types.NoneType:
            values.append(None)
        elif member is bool:
            values += [False, True]
        elif get_origin(member) is Literal:
            values += get_args(member)
        elif isinstance(member, type) and issubclass(member, Enum):
            values += member
        elif _is_structure(member):
            values.append(member)
        else:
            raise TypeError(
                f"{place} must list its options, as in Choice(1, 2): {member} does not name them"
            )
    return tuple(values)


def _options(
    base: object, values: tuple[object, ...], place: str, above: tuple[object, ...]
) -> ChoiceContent:
    scalar = base if isinstance(base, type) and base in _SCALARS else None
    options = tuple(_option(value, scalar, place, above) for value in values)
    return ChoiceContent(options)


def _wire_prior(prior: JsonValue, options: tuple[FieldOption, ...]) -> JsonValue:
    """Return a user prior with the JSON value of its option, which may be given as an object."""
    if not isinstance(prior, Mapping) or "value" not in prior:
        return prior
    value = prior["value"]
    return {**prior, "value": next((one.wire for one in options if one.value is value), value)}


def _option(
    value: object, scalar: type | None, place: str, above: tuple[object, ...]
) -> FieldOption:
    if _is_structure(value):
        structure = read_structure(value, above)
        return FieldOption(structure.name, value, structure)
    if isinstance(value, Enum):
        own = value.value
        return FieldOption(own if isinstance(own, _SCALARS) else value.name, value)
    if scalar is not None and not _fits(value, scalar):
        raise TypeError(f"{place} must have options of type {scalar.__name__}, got {value!r}")
    return FieldOption(_wire(value, place), value)


def _fits(value: object, scalar: type) -> bool:
    if isinstance(value, bool) or scalar is bool:
        return type(value) is scalar
    return isinstance(value, (int, float) if scalar is float else scalar)


def _wire(value: object, place: str) -> JsonValue:
    if isinstance(value, list | tuple):
        return [_wire(item, place) for item in value]
    if value is None or isinstance(value, _SCALARS):
        return value
    raise TypeError(
        f"{place} must have options that are JSON values, members of an enum, dataclasses or "
        f"models; got {value!r:.200}"
    )
