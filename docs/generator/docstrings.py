"""Sections of the docstrings of this repository, as text."""

from __future__ import annotations

import inspect
import re
from typing import Final

_HEADING: Final = re.compile(
    r"^(Args|Attributes|Returns|Raises|Examples|Source|Departures):", re.MULTILINE
)
_ENTRY: Final = re.compile(r"^\*{0,2}(\w+): ", re.MULTILINE)


def sections_of(text: str) -> dict[str, str]:
    """Return the sections of a docstring by heading; the description has the empty heading.

    Args:
        text: The docstring, without its indentation, as `inspect.getdoc` returns it.
    """
    heads = list(_HEADING.finditer(text))
    ends = [*(head.start() for head in heads), len(text)]
    found = {"": text[: ends[0]].strip()}
    for head, end in zip(heads, ends[1:], strict=True):
        found[head[1]] = inspect.cleandoc(text[head.end() : end].strip("\n"))
    return found


def entries_of(section: str) -> dict[str, str]:
    """Return the entries of a section such as `Args`: the meaning in one line, by name."""
    heads = list(_ENTRY.finditer(section))
    ends = [*(head.start() for head in heads[1:]), len(section)]
    return {
        head[1]: " ".join(section[head.end() : end].split())
        for head, end in zip(heads, ends, strict=False)
    }
