r"""Texts that cannot travel: JSON and YAML can write half of a surrogate pair, UTF-8 cannot.

Such a text comes from an escape such as `\ud800`, or from a file name that is not UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

RULE: Final = "must be text in UTF-8, without half of a surrogate pair"
REMEDY: Final = (
    "write the character itself, or both halves of its pair; rename such a file or folder"
)
_HALF: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class BrokenText:
    """Text that has no form in UTF-8: where it is, and the character."""

    place: str
    """Path of the value or key, e.g. `searchSpace.x._value[0]`; empty: the data itself."""
    character: str
    """First half of a surrogate pair that stands alone."""


def broken_text(data: Any, place: str = "") -> BrokenText | None:  # noqa: ANN401 - any JSON value
    r"""Return the first text or key in a value that UTF-8 cannot encode; None: there is none.

    Args:
        data: the value; parts that are no text, path, mapping, list or tuple are passed over.
        place: path of the value.

    Examples:
        >>> broken_text({"x": {"_value": ["a", "\ud800b"]}}, "searchSpace")
        BrokenText(place='searchSpace.x._value[1]', character='\ud800')
    """
    waiting: list[tuple[Any, str]] = [(data, place)]
    seen: set[int] = set()
    while waiting:
        value, where = waiting.pop()
        if isinstance(value, Mapping | list | tuple):
            if id(value) in seen:  # it may contain itself
                continue
            seen.add(id(value))
        if isinstance(value, str | PurePath):
            if half := _half(str(value)):
                return BrokenText(where, half)
        elif isinstance(value, Mapping):
            for key in value:
                if isinstance(key, str) and (half := _half(key)):
                    return BrokenText(_joined(where, key), half)
            waiting += [(value[key], _joined(where, str(key))) for key in reversed([*value])]
        elif isinstance(value, list | tuple):
            waiting += [
                (value[index], f"{where}[{index}]") for index in reversed(range(len(value)))
            ]
    return None


def _half(text: str) -> str:
    found = None if text.isascii() else _HALF.search(text)
    return found[0] if found else ""


def _joined(place: str, key: str) -> str:
    name = key.encode("utf-8", "backslashreplace").decode("utf-8")
    return f"{place}.{name}" if place else name
