from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "simulation.md"


def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}

    for block in blocks:
        exec(block, names)

    lines = capsys.readouterr().out.splitlines()
    assert len(blocks) == 2
    assert len(lines) == 4
    assert all("of 0.990 after" in line for line in lines), lines
