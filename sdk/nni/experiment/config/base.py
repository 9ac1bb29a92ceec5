"""Base of the configuration classes: two spellings of fields, paths, error messages."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from nni.experiment.config.quantities import (
    duration_seconds,
    duration_text,
    gpu_indices,
    size_bytes,
)
from nni.experiment.config.texts import check_texts
from nni.experiment.errors import ConfigError, Problem

_base_directory: ContextVar[Path | None] = ContextVar("base_directory", default=None)
"""Folder of the YAML file that is being read; `None` in Python code."""

_PYDANTIC_RULES: Final = {
    "missing": "must be given",
    "int_type": "must be an integer",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "dict_type": "must be a mapping of names to values",
    "list_type": "must be a list",
    "float_type": "must be a number",
    "model_type": "must be a mapping of fields to values",
    "model_attributes_type": "must be a mapping of fields to values",
}


_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


@contextmanager
def paths_relative_to(directory: Path) -> Iterator[None]:
    """Resolve relative paths of configurations that are made in the block against ``directory``."""
    token = _base_directory.set(directory)
    try:
        yield
    finally:
        _base_directory.reset(token)


def absolute_path(path: str | Path) -> Path:
    """Return ``path`` absolute and without `~`: from the YAML file's folder, else from the cwd."""
    expanded = Path(path).expanduser()
    return Path((_base_directory.get() or Path.cwd()) / expanded).resolve()


def _checked_path(value: object) -> object:
    if isinstance(value, str | Path):
        if isinstance(value, str) and ("\0" in value or not value):
            raise ValueError("must be a path")
        return absolute_path(value)
    raise ValueError("must be a path")


def _checked_duration(value: object) -> object:
    from datetime import timedelta

    text = duration_text(value) if isinstance(value, timedelta) else value
    if not isinstance(text, str):
        raise ValueError("must be a number followed by s, m, h or d, such as 10m or 0.5h")  # noqa: TRY004 - pydantic collects ValueError
    duration_seconds(text)
    return text


def _checked_host(value: object) -> object:
    if not isinstance(value, str) or not (_HOST.fullmatch(value) or _is_address(value)):
        raise ValueError("must be an IP address or a host name, without a port")
    return value


def _is_address(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not have the character NUL")
    return text


def _checked_size(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be a number followed by kb, mb, gb or tb, such as 8gb")  # noqa: TRY004 - see above
    size_bytes(value)
    return value


AbsolutePath = Annotated[Path, BeforeValidator(_checked_path)]
DurationText = Annotated[str, BeforeValidator(_checked_duration)]
HostText = Annotated[str, BeforeValidator(_checked_host)]
SizeText = Annotated[str, BeforeValidator(_checked_size)]
GpuIndices = Annotated[list[int], BeforeValidator(gpu_indices)]
Text = Annotated[StrictStr, AfterValidator(_without_nul)]
Integer = StrictInt
Flag = StrictBool
_LARGEST_COUNT: Final = 2**31 - 1
Count = Annotated[StrictInt, Field(ge=0, le=_LARGEST_COUNT)]
PositiveInteger = Annotated[StrictInt, Field(ge=1, le=_LARGEST_COUNT)]
Port = Annotated[StrictInt, Field(ge=1, le=65535)]
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
"""Finite number of at least 0."""


class ConfigModel(BaseModel):
    """Base of all configuration classes: checked when made and changed, camelCase in YAML.

    Fields are written in snake_case in Python and in camelCase in YAML; both spellings are
    accepted, but not both of one field. `None` means "not given". Assignments are checked at once.

    Raises:
        ConfigError: from the constructor and from assignments.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        validate_assignment=True,
        hide_input_in_errors=True,  # it may be a secret
    )

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401 - pydantic checks them
        given = self._by_python_name(fields)
        check_texts({to_camel(name): value for name, value in given.items()})
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ConfigError(problems_of(error, type(self))) from error

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and name not in type(self).model_fields:
            raise ConfigError([unknown_field(name, type(self), snake_case=True)])
        check_texts(value, name)
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise ConfigError(problems_of(error, type(self), snake_case=True)) from error

    @classmethod
    def _by_python_name(cls, fields: dict[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for key, value in fields.items():
            name = cls.field_of(key)
            if name in given:
                raise ConfigError([Problem(to_camel(name), f"must not be given again as {key}")])
            if value is not None:
                given[name] = value
        return given

    @classmethod
    def field_of(cls, key: str) -> str:
        """Return the Python name of a field in either spelling; an unknown key as it is.

        Args:
            key: name of the field in snake_case or camelCase.

        Returns:
            The name in snake_case; `key` itself if there is no such field.
        """
        for name, field in cls.model_fields.items():
            if key in {name, field.alias}:
                return name
        return key

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are given, as JSON values.

        Returns:
            Values by camelCase name, as in YAML. Paths are absolute texts.
        """
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def secret_paths(self) -> list[str]:
        """Return paths of the given secret fields, those of nested sections and lists included.

        Returns:
            Paths in camelCase: `machineList[0].password`.
        """
        paths: list[str] = []
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            path = to_camel(name)
            if isinstance(value, str) and not field.repr:
                paths.append(path)
            elif isinstance(value, ConfigModel):
                paths += [f"{path}.{inner}" for inner in value.secret_paths()]
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, ConfigModel):
                        paths += [f"{path}[{index}].{inner}" for inner in item.secret_paths()]
        return paths


def unknown_field(name: str, model: type[ConfigModel], *, snake_case: bool = False) -> Problem:
    """Return the problem of a field that ``model`` lacks, with the closest known name."""
    known = list(model.model_fields) if snake_case else [to_camel(f) for f in model.model_fields]
    close = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(
        name.lower(), known, n=1
    )
    remedy = f"did you mean {close[0]}?" if close else "known are: " + ", ".join(known)
    return Problem(name, "is no field here", None, remedy)


def problems_of(
    error: ValidationError, model: type[ConfigModel], *, snake_case: bool = False
) -> list[Problem]:
    """Convert a ValidationError of pydantic to problems with the paths of the fields."""
    problems: list[Problem] = []
    for detail in error.errors(include_url=False):
        cause = detail.get("ctx", {}).get("error")
        path = _path(detail["loc"], snake_case=snake_case)
        if isinstance(cause, ConfigError):
            problems.extend(problem.moved(path) for problem in cause.problems)
        else:
            problems.append(_problem(detail, path, cause, model))
    return problems


def _problem(detail: Any, path: str, cause: object, model: type[ConfigModel]) -> Problem:  # noqa: ANN401 - pydantic's own type is a typed dict of optional parts
    kind = detail["type"]
    if kind == "extra_forbidden":
        return unknown_field(str(detail["loc"][-1]), model)
    if cause is not None:
        said = "got " in str(cause)  # it names the value itself
        return Problem(path or model.__name__, str(cause), None if said else _value(detail, model))
    rule = _PYDANTIC_RULES.get(kind)
    if rule is None:
        rule = str(detail["msg"]).replace("Input should be", "must be")
    value = None if kind == "missing" else _value(detail, model)
    return Problem(path or model.__name__, rule, value)


def _value(detail: Any, model: type[ConfigModel]) -> object:  # noqa: ANN401 - see _problem
    value = detail.get("input")
    name = model.field_of(str(next(reversed(detail["loc"]), "")))
    is_secret = name in model.model_fields and not model.model_fields[name].repr
    return None if is_secret or isinstance(value, dict | ConfigModel) else value


def _path(location: tuple[int | str, ...], *, snake_case: bool) -> str:
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            name = part if snake_case else to_camel(part)
            path += f".{name}" if path else name
    return path
