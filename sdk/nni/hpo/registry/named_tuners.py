"""Parser of a list of tuners, each given by a name and arguments.

Standard library only, so that a configuration is checked without numpy.

Examples:
    >>> [one.label for one in named_tuners(["TPE", {"name": "TPE", "classArgs": {"seed": 1}}])]
    ['TPE', 'TPE-2']
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nni.hpo.json_value import JsonValue

LEAST_TUNERS: Final = 2
MOST_TUNERS: Final = 20
MODE: Final = "optimize_mode"
_SPELLINGS: Final = {"class_args": "classArgs"}
"""Names in Python of keys in YAML."""
_KEYS: Final = ("name", "classArgs", "label")
_LABEL_LENGTH: Final = 64
"""Characters of a label, which stands in tables."""


@dataclass(frozen=True, slots=True)
class NamedTuner:
    """Tuner by name, with arguments, and a label that is unique in its list."""

    name: str
    class_args: Mapping[str, JsonValue] = field(default_factory=dict)
    label: str = ""


def named_tuners(items: object, field: str = "tuners") -> tuple[NamedTuner, ...]:
    """Return the tuners of a list, with labels; raise ValueError if an item is malformed.

    Args:
        items: list of names, or of dicts with `name` and optional `classArgs` and `label`. Without
            a label it is the name, with a number behind it if it is taken.
        field: name of the list in errors.

    Raises:
        ValueError: an item is malformed; the text names it, the rule and a remedy.
    """
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise ValueError(f"{field} must be a list of tuners, got {items!r:.200}")  # noqa: TRY004 - one type for all faults of an input
    if not LEAST_TUNERS <= len(items) <= MOST_TUNERS:
        raise ValueError(
            f"{field} must have {LEAST_TUNERS} to {MOST_TUNERS} tuners, got {len(items)}; "
            "a single one is given as the tuner itself"
        )
    labels = _given_labels(items)
    found: list[NamedTuner] = []
    for index, item in enumerate(items):
        tuner = _parsed(item, f"{field}[{index}]")
        if tuner.label and labels.count(tuner.label) > 1:
            raise ValueError(
                f"{field}[{index}].label must differ from the other labels, got {tuner.label!r}"
            )
        label = tuner.label or _free_label(tuner.name, labels)
        labels.append(label)
        found.append(NamedTuner(tuner.name, tuner.class_args, label))
    return tuple(found)


def check_tuners(tuners: JsonValue = None, **others: JsonValue) -> None:
    """Raise ValueError unless an argument `tuners` is None or a list that `named_tuners` reads.

    Raises:
        ValueError: it is malformed.
    """
    del others
    if tuners is not None:
        named_tuners(tuners)


def _given_labels(items: Sequence[object]) -> list[str]:
    return [str(item["label"]) for item in items if isinstance(item, Mapping) and item.get("label")]


def _free_label(name: str, taken: Sequence[str]) -> str:
    """Return the name, or the first of `name-2`, `name-3`, ... that no tuner has."""
    label, number = name, 1
    while label in taken:
        number += 1
        label = f"{name}-{number}"
    return label


def _parsed(item: object, field: str) -> NamedTuner:
    if isinstance(item, str):
        item = {"name": item}
    if not isinstance(item, Mapping):
        raise ValueError(f"{field} must be a name or a dict with 'name', got {item!r:.200}")  # noqa: TRY004 - as above
    given = {_SPELLINGS.get(str(key), str(key)): value for key, value in item.items()}
    for key in given:
        if key not in _KEYS:
            raise ValueError(
                f"{field}.{key} is not known; a tuner of the list has {', '.join(_KEYS)}. "
                "Register a class of your own with `nnictl algo register` to have a name for it"
            )
    name, label = given.get("name"), given.get("label") or ""
    if not isinstance(name, str) or not name:
        raise ValueError(f"{field}.name must be the name of a tuner, got {name!r:.200}")
    if not isinstance(label, str) or len(label) > _LABEL_LENGTH:
        raise ValueError(
            f"{field}.label must be a text of at most {_LABEL_LENGTH} characters, got {label!r:.80}"
        )
    arguments = given.get("classArgs") or {}
    if not isinstance(arguments, Mapping):
        raise ValueError(f"{field}.classArgs must be a dict, got {arguments!r:.200}")  # noqa: TRY004 - as above
    if MODE in arguments:
        raise ValueError(
            f"{field}.classArgs.{MODE} must be left out, got {arguments[MODE]!r}; all tuners of "
            f"the list have the {MODE} of the whole"
        )
    return NamedTuner(name, dict(arguments), label)
