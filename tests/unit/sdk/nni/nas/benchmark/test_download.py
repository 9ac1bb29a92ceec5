"""Command line that finds a benchmark's file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nni.nas.benchmark.download import main


def test_path_of_a_file_is_printed(databases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["nasbench101"])

    assert status == 0
    assert capsys.readouterr().out == f"{databases / 'nasbench101.db'}\n"


def test_missing_file_is_reported_without_a_traceback(
    databases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["nds"])

    assert status == 1
    assert f"no file in {databases}" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["benchmark", "benchmarks"])
def test_both_spellings_run_as_a_program(package: str, databases: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"nni.nas.{package}.download", "nasbench201"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert Path(done.stdout.strip()) == databases / "nasbench201.db"
