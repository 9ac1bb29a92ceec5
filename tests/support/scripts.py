"""Scripts of the examples, run in this interpreter: importing torch again would take seconds."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


class Scripts:
    """Runner of the examples' scripts; modules of an example are forgotten after each run.

    Args:
        folder: Working directory of the scripts.
        monkeypatch: Restores the interpreter after the test.
        capsys: Captures the output.
    """

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(folder)

    def __call__(self, name: str | Path, *words: object) -> str:
        """Run a script by its path, absolute or below `examples`, and return what it prints."""
        script = ROOT / "examples" / name
        before = set(sys.modules)
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "argv", [str(script), *map(str, words)])
            patch.setattr(sys, "path", [str(script.parent), *sys.path])
            patch.setattr(sys, "dont_write_bytecode", True)
            runpy.run_path(str(script), run_name="__main__")
        for module in set(sys.modules) - before:
            if str(script.parent) in str(getattr(sys.modules[module], "__file__", "")):
                del sys.modules[module]
        return self._capsys.readouterr().out


@pytest.fixture
def scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Scripts:
    """Runner of scripts whose working directory is a temporary folder."""
    return Scripts(tmp_path, monkeypatch, capsys)


def example_module(folder: str, name: str) -> ModuleType:
    """Return a module of an example, imported as from its folder."""
    path = ROOT / "examples" / folder
    before = sys.path
    sys.path = [str(path), *before]
    try:
        return importlib.import_module(name)
    finally:
        sys.path = before
