"""Command-line options for the fields of a type: `--rate 0.01 --model Svm --model/Svm/c 3`."""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from nni.hpo.json_value import JsonValue
from nni.hpo.space._type_reader import ChoiceContent, Field, FieldOption, NumberContent, Structure

_NAME = "_name"
"""Key of the active branch."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Field with a command-line option, and the branches of choices that enclose it."""

    branches: tuple[tuple[str, str], ...]
    """Enclosing choices, outermost first: key and branch."""
    key: str
    """Key in the configuration of its branch."""
    field: Field

    @property
    def flag(self) -> str:
        """Command-line option `--...`: enclosing choices, branches and the key, joined by /."""
        words = [word for branch in self.branches for word in branch]
        return "--" + "/".join([*words, self.key])


def with_arguments(
    structure: Structure, parameters: Mapping[str, Any], arguments: Sequence[str]
) -> dict[str, JsonValue]:
    """Return a copy of a configuration with a command line's overrides; SystemExit if one is wrong.

    Args:
        structure: description of the configuration's type.
        parameters: the configuration without overrides.
        arguments: arguments after the name of the program.

    Raises:
        SystemExit: an option is unknown, its value is wrong, or `--help` is given; the message is
            printed.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False)
    leaves = sorted(_leaves(structure, (), ""), key=lambda leaf: len(leaf.branches))
    for leaf in leaves:
        parser.add_argument(
            leaf.flag,
            dest=leaf.flag,
            type=_reader(leaf.field),
            default=argparse.SUPPRESS,
            metavar="VALUE",
            help=_help(leaf.field),
        )
    given = vars(parser.parse_args(arguments))
    merged = deepcopy(dict(parameters))
    for leaf in leaves:  # outer ones first: they select the branches of the inner ones
        if leaf.flag in given:
            _level(merged, leaf, parser.error)[leaf.key] = given[leaf.flag]
    return merged


def _leaves(
    structure: Structure, branches: tuple[tuple[str, str], ...], prefix: str
) -> Iterator[_Leaf]:
    for field in structure.fields:
        key = prefix + field.name
        if isinstance(field.content, Structure):
            yield from _leaves(field.content, branches, f"{key}/")
            continue
        yield _Leaf(branches, key, field)
        if isinstance(field.content, ChoiceContent):
            for option in field.content.options:
                if option.branch is not None:
                    inside = (*branches, (key, option.branch.name))
                    yield from _leaves(option.branch, inside, "")


def _level(
    configuration: dict[str, Any], leaf: _Leaf, refuse: Callable[[str], NoReturn]
) -> dict[str, Any]:
    """Return the nested dict that holds an option's value; refuse it in an inactive branch."""
    level = configuration
    for key, branch in leaf.branches:
        inner = level.get(key)
        if not isinstance(inner, dict) or inner.get(_NAME) != branch:
            refuse(f"argument {leaf.flag}: is only for --{key} {branch}")
        level = inner
    return level


def _reader(field: Field) -> Callable[[str], JsonValue]:
    """Return the converter of an option's text into a value of the configuration."""
    content = field.content
    if isinstance(content, NumberContent):
        return content.type or float
    if isinstance(content, ChoiceContent):
        return _option_reader({_text(option): option for option in content.options})
    hint = getattr(content, "hint", None)
    if hint is int or hint is float or hint is str:
        return hint
    if isinstance(hint, type) and issubclass(hint, Enum):
        return str
    return _json


def _option_reader(options: Mapping[str, FieldOption]) -> Callable[[str], JsonValue]:
    def read(text: str) -> JsonValue:
        if text not in options:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(options)}; got {text}")
        option = options[text]
        return option.wire if option.branch is None else {_NAME: option.wire}

    return read


def _text(option: FieldOption) -> str:
    return option.wire if isinstance(option.wire, str) else json.dumps(option.wire)


def _json(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _help(field: Field) -> str:
    content = field.content
    if isinstance(content, NumberContent):
        entry = content.range.entry()
        text = f"{entry['_type']} {entry['_value']}"
    elif isinstance(content, ChoiceContent):
        text = "one of " + ", ".join(map(_text, content.options))
    else:
        text = "not tuned"
    return text.replace("%", "%%")  # argparse formats it
