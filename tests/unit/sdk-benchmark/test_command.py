"""Command line of the benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nni_benchmark.command import main
from nni_benchmark.runs import Run, Runs
from nni_benchmark.suite import recorded_runs
from nni_benchmark.tables import read_text


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


def test_unknown_name_is_an_error_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--problems", "brain"]) == 2

    said = capsys.readouterr().err
    assert said.startswith("error: problem must be one of classic")
    assert said.count("\n") == 1


def test_keep_adds_the_runs_of_peers_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs({"optuna": "5"})
    runs.add(Run("optuna-tpe", "branin", 0, 3, ((1, 1.0),)))
    runs.add(Run("TPE", "branin", 0, 3, ((1, 1.0),)))
    (tmp_path / "one.json").write_text(runs.to_json())
    runs.add(Run("optuna-tpe", "branin", 1, 3, ((1, 1.0),)))
    (tmp_path / "two.json").write_text(runs.to_json())
    kept = tmp_path / "kept.json.gz"

    for name in ("one.json", "two.json"):
        assert main(["keep", str(tmp_path / name), "--into", str(kept)]) == 0

    assert "holds 2 runs of optuna-tpe" in capsys.readouterr().out
    assert [run.seed for run in Runs.from_json(read_text(kept))] == [0, 1]


def test_of_peers_only_what_was_not_recorded_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["--problems", "branin", "--seeds", "1", "--trials", "50", "--missing"]

    assert main(["compare", "optuna-random", *size, "--runs", str(tmp_path / "runs.json")]) == 0

    assert capsys.readouterr().err == ""
    assert len(Runs.from_json((tmp_path / "runs.json").read_text())) == len(recorded_runs())
