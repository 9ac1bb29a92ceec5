"""YAML reader and writer: no tags, and `1e-5` is a number."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from nni.experiment.config.texts import check_texts
from nni.experiment.errors import ConfigError, Problem

_FLOAT = re.compile(
    r"""^[-+]?(?:
        [0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
      | \.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?
      | [0-9][0-9_]*[eE][-+]?[0-9]+
      | \.(?:inf|Inf|INF)
    )$|^\.(?:nan|NaN|NAN)$""",
    re.VERBOSE,
)
"""YAML 1.2 numbers; the 1.1 rule of the library reads `1e-5` as text."""


class _Loader(yaml.SafeLoader):
    """The safe loader with YAML 1.2 floats; a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the signature of the base
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str | int | float):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key!r} is given twice", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [rule for rule in rules if rule[0] != "tag:yaml.org,2002:float"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))


class _Dumper(yaml.SafeDumper):
    """Safe dumper that writes the numbers that `_Loader` reads."""


_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers.copy()


def parse_yaml(text: str, source: str) -> Any:  # noqa: ANN401 - any YAML document
    """Parse the one YAML document in a text; raise ConfigError with line and column.

    Raises:
        ConfigError: it is no YAML; names ``source``, line and column. Or a text in it has half of a
            surrogate pair; names its path.
    """
    try:
        return _checked(yaml.load(text, Loader=_Loader), source)  # noqa: S506 - derived from SafeLoader
    except RecursionError as error:
        raise ConfigError(
            [Problem("the file", "must not be nested that deeply")], source
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "the file"
        what = getattr(error, "problem", None) or str(error)
        raise ConfigError([Problem(place, f"is no valid YAML: {what}")], source) from error


def _checked(document: object, source: str) -> object:
    try:
        check_texts(document)
    except ConfigError as error:
        raise error.within(source) from None
    return document


def require_text_keys(document: object, place: str = "") -> None:
    """Raise ConfigError unless all mappings in a document have texts as keys, as in JSON.

    Raises:
        ConfigError: one has not; names its place.
    """
    if isinstance(document, dict):
        for key, value in document.items():
            if not isinstance(key, str):
                remedy = f'quote it: "{key}"'
                raise ConfigError([Problem(place or "a key", "must be a text", key, remedy)])
            require_text_keys(value, f"{place}.{key}" if place else key)
    elif isinstance(document, list):
        for index, value in enumerate(document):
            require_text_keys(value, f"{place}[{index}]")


def read_text(path: Path, field: str) -> str:
    """Return the text of a file that a user named; ConfigError unless it is readable UTF-8.

    Raises:
        ConfigError: it does not exist, is a folder, may not be read, or is no UTF-8.
    """
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        problem = Problem(field, "must name an existing file", str(path))
    except IsADirectoryError:
        problem = Problem(field, "must name a file, not a folder", str(path))
    except UnicodeDecodeError:
        problem = Problem(field, "must name a text file in UTF-8", str(path))
    except OSError as error:
        problem = Problem(field, f"must name a readable file: {error.strerror}", str(path))
    raise ConfigError([problem])


def read_yaml(path: Path, field: str) -> Any:  # noqa: ANN401 - any YAML document
    """Return the document in a YAML file; ConfigError if it is unreadable or malformed.

    Raises:
        ConfigError: it cannot be read, or is no YAML.
    """
    return parse_yaml(read_text(path, field), str(path))


def read_json(path: Path, field: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value in a JSON file; ConfigError if it is unreadable or malformed.

    Raises:
        ConfigError: it cannot be read, or is no JSON; names file, line and column.
    """
    return _parse_json(read_text(path, field), str(path))


def read_json_or_yaml(path: Path, field: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value in a JSON file, or a YAML file if it is no JSON; ConfigError if neither.

    A file named `.json` may differ from JSON by what YAML knows and JSON does not, such as a comma
    after the last item. A value that is missing in it is an error, though YAML takes it for null.

    Raises:
        ConfigError: it cannot be read, or is neither.
    """
    text = read_text(path, field)
    try:
        return _parse_json(text, str(path))
    except ConfigError as json_error:
        try:
            document = parse_yaml(text, str(path))
        except ConfigError as yaml_error:
            raise (json_error if _is_json(path) else yaml_error) from yaml_error
        if _is_json(path) and _has_null(document):
            raise
        return document


def _parse_json(text: str, source: str) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a JSON text; raise ConfigError with line and column.

    Raises:
        ConfigError: it is no JSON; names ``source``, line and column.
    """
    try:
        return _checked(json.loads(text), source)
    except ConfigError:
        raise
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigError([Problem(place, f"is no valid JSON: {error.msg}")], source) from error
    except (ValueError, RecursionError) as error:
        rule = f"must be JSON that can be read: {error}"
        raise ConfigError([Problem("the file", rule)], source) from error


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _has_null(document: object) -> bool:
    if isinstance(document, dict):
        return any(map(_has_null, document.values()))
    if isinstance(document, list):
        return any(map(_has_null, document))
    return document is None


def to_yaml(document: object) -> str:
    """Return ``document`` as YAML that `parse_yaml` reads back to an equal value."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
