"""Tables of names on the pages for users of NNI: import path, names, and what they are here.

The last column is `the same`, a new spelling, `not available yet`, or `out of scope` with a reason.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

HEADER = "| import path | names | here |"
MISSING = ("not available yet", "out of scope: ")
DOCS = Path(__file__).parents[2] / "docs"


def rows_of(page: str) -> list[tuple[str, str, str]]:
    """Return path, name and what it is here, for every name of every table of a page."""
    found = []
    for table in (DOCS / page).read_text("utf-8").split(HEADER)[1:]:
        for line in table.partition("\n\n")[0].splitlines()[2:]:
            path, names, here = (cell.strip() for cell in line.strip("|").split(" | "))
            found += [(path.strip("` "), name, here) for name in re.findall(r"`(\w+)`", names)]
    return found


def attribute(dotted: str) -> object:
    """Return what a dotted path names: a module, or a name in one."""
    head, _, name = dotted.rpartition(".")
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        return getattr(attribute(head) if head else importlib.import_module(name), name)


def exists(module: str, name: str) -> bool:
    """Return whether `from module import name` works."""
    try:
        return hasattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return False


def fault_of(path: str, name: str, here: str) -> str:
    """Return why a row of a table is wrong; an empty text if it is right."""
    if here == "the same":
        return "" if exists(path, name) else f"{path} has no {name}: change its row"
    if exists(path, name):
        return f"{path}.{name} exists: change its row"
    if here.startswith(MISSING):
        return ""
    spellings = re.findall(r"`([\w.]+)`", here)
    try:
        found = [attribute(one) for one in spellings]
    except (AttributeError, ModuleNotFoundError) as error:
        return f"{path}.{name} is not {here}: {error}"
    return "" if found else f"{path}.{name}: {here!r} names no spelling"
