"""The example of a search through the service runs as its README says, with fewer networks."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape
from tests.support.nnictl import shared_shape

__all__ = ["shared_shape"]  # a fixture

EXAMPLE = Path(__file__).parents[2] / "examples" / "nas" / "service"


@pytest.mark.timeout(240)
def test_script_and_commands_find_networks(shared_shape: LocalShape, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "service", ignore=ignored))

    def run(line: str) -> str:
        return shared_shape.run(["bash", "-c", f"cd {folder} && {line}"], timeout_s=150).stdout

    printed = run(f"{sys.executable} search.py --models 3 --epochs 1")
    listed = json.loads(run("nnictl nas list --json"))
    (search,) = listed
    top = json.loads(run(f"nnictl nas top {search['id']} --json"))

    rows = [line for line in printed.splitlines() if "width" in line]
    assert len(rows) == 2
    assert all(re.match(r"\d+\.\d\d %  \{'second': ", row) for row in rows)
    assert search["strategy"] == "RegularizedEvolution"
    assert len(top) == 3
    assert top[0]["value"] >= top[1]["value"]
    assert set(top[0]["sample"]) == {"second", "dropout", "width"}
