"""Execution of notebooks without Jupyter: their code cells, in this process."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any


class Notebook:
    """Code cells of a notebook, which are executed in order in one namespace.

    Args:
        path: file in the format of Jupyter.
        replacements: text that is replaced in the cells, such as a port.
    """

    def __init__(self, path: Path, replacements: dict[str, str] | None = None) -> None:
        document = json.loads(path.read_text("utf-8"))
        assert document["nbformat"] == 4
        self._name = path.name
        self._cells: list[str] = []
        for cell in document["cells"]:
            if cell["cell_type"] != "code":
                continue
            assert not cell["outputs"], f"{path.name} must be saved without outputs"
            source = "".join(cell["source"])
            for old, new in (replacements or {}).items():
                source = source.replace(old, new)
            self._cells.append(source)
        self._names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, *, until: str = "") -> list[Any]:
        """Execute the cells that were not yet; return what each shows, None if nothing.

        Args:
            until: source text of a cell before which execution stops; empty: none.
        """
        shown = []
        while self._cells and (not until or until not in self._cells[0]):
            shown.append(self._execute(self._cells.pop(0)))
        return shown

    def _execute(self, source: str) -> Any:
        """Execute a cell; return the value of its last line if it is an expression."""
        tree = ast.parse(source, self._name)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            exec(compile(tree, self._name, "exec"), self._names)
            return None
        before = ast.Module(tree.body[:-1], [])
        exec(compile(before, self._name, "exec"), self._names)
        return eval(compile(ast.Expression(last.value), self._name, "eval"), self._names)
