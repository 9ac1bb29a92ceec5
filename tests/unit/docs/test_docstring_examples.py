"""Execution of every example in the docstrings of the library, with the output that it shows.

An example is a section `Examples:` (Google convention) whose lines begin with `>>>` and are
followed by what they print. Random draws have a seed; `...` stands for what no reader needs.
"""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("sdk", "sdk-benchmark")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_name(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = [
    module_name(path, ROOT / folder)
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("nni*/**/*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_print_what_they_show(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    report: list[str] = []

    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in found:
        runner.run(test, out=report.append)

    assert runner.summarize(verbose=False).attempted > 0
    assert "".join(report) == ""
