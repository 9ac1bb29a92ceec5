"""The command line of the benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nni.hpo.benchmark.command import main
from nni.hpo.benchmark.runs import Runs


def test_list_names_searchers_problems_and_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0

    said = capsys.readouterr().out
    assert "  TPE\n" in said
    assert "branin" in said
    assert "nnismall-binary" in said


def test_compare_reports_beside_the_recorded_peers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["--problems", "branin", "--seeds", "6", "--trials", "50"]
    files = ["--json", str(tmp_path / "report.json"), "--runs", str(tmp_path / "runs.json")]

    assert main(["compare", "TPE", "Random", *size, *files, "--judge", "TPE"]) == 0

    said = capsys.readouterr()
    assert "TPE against the best peer: 1 cells" in said.out
    assert "Random on branin, seed 5" in said.err
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report["regrets"]["branin"]["50"]) > {"TPE", "Random", "optuna-tpe"}
    assert len(Runs.from_json((tmp_path / "runs.json").read_text())) == 12


def test_compare_goes_on_with_the_runs_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["compare", "Random", "--problems", "branin", "--seeds", "2", "--trials", "5"]
    line += ["--alone", "--runs", str(tmp_path / "runs.json")]
    main(line)
    capsys.readouterr()

    assert main(line) == 0

    assert capsys.readouterr().err == ""


def test_wrong_name_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--problems", "brain"]) == 2

    said = capsys.readouterr().err
    assert said.startswith("error: problem must be one of classic")
    assert said.count("\n") == 1
