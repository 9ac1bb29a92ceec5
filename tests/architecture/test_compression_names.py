"""The page on the names of NNI 2.x and 3.0 says the truth about each of them.

Its tables have an import path, names, and what they are here: `the same`, a new spelling,
`not available yet`, or `out of scope` with the reason.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-nni-compression.md"
HEADER = "| import path | names | here |"
MISSING = ("not available yet", "out of scope: ")


def rows() -> list[tuple[str, str, str]]:
    """Return path, name and what it is here, for every name of every table."""
    found = []
    for table in PAGE.read_text("utf-8").split(HEADER)[1:]:
        for line in table.partition("\n\n")[0].splitlines()[2:]:
            path, names, here = (cell.strip() for cell in line.strip("|").split(" | "))
            found += [(path.strip("` "), name, here) for name in re.findall(r"`(\w+)`", names)]
    return found


ROWS = rows()
IDS = [f"{path}.{name}" for path, name, _ in ROWS]


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


@pytest.mark.parametrize(("path", "name", "here"), ROWS, ids=IDS)
def test_name_is_what_the_page_says(path: str, name: str, here: str) -> None:
    if here == "the same":
        assert exists(path, name), f"{path} has no {name}: change its row in {PAGE.name}"
    elif here.startswith(MISSING):
        assert not exists(path, name), f"{path}.{name} exists: change its row in {PAGE.name}"
    else:
        (spelling,) = re.findall(r"`([\w.]+)`", here)
        assert attribute(spelling) is not None
        assert not exists(path, name), f"{path}.{name} exists: change its row in {PAGE.name}"


def test_tables_name_every_generation() -> None:
    paths = {path for path, _, _ in ROWS}

    assert len(ROWS) > 100
    assert len(set(IDS)) == len(IDS)
    assert {
        "nni.algorithms.compression.pytorch.pruning",
        "nni.algorithms.compression.v2.pytorch.pruning",
        "nni.compression.pruning",
        "nni.compression.quantization",
    } <= paths


def test_path_that_names_nothing_is_seen() -> None:
    assert not exists("nni.compression.pruning", "NoSuchPruner")
    with pytest.raises(AttributeError):
        attribute("nni.compression.pruning.NoSuchPruner")
