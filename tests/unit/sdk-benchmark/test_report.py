"""Report as text and JSON."""

from __future__ import annotations

import json

import pytest

from nni_benchmark.report import Report, is_peer, report_of
from nni_benchmark.runs import Run, Runs
from nni_benchmark.suite import chosen_problems


@pytest.fixture
def report() -> Report:
    runs = Runs({"optuna": "5"})
    regrets = {"auto": 1.0, "TPE": 2.0, "optuna-tpe": 4.0, "optuna-random": 8.0}
    for name, regret in regrets.items():
        for problem in ("branin", "levy8"):
            for seed in range(6):
                runs.add(Run(name, problem, seed, 50, ((3, regret),)))
    return report_of(runs, chosen_problems(["branin", "levy8"]), [50], judge=["auto"])


def test_text_tells_ranks_verdicts_and_pairs(report: Report) -> None:
    text = report.to_text()

    assert "auto against the best peer: 2 cells, lost 0 (0%), won 2 (100%)" in text
    assert "of these classic: 1 cells, lost 0 (0%), won 1 (100%)" in text
    assert "Mean rank, flat @50: 2 problems" in text
    assert "optuna-tpe | optuna-tpe-univariate | optuna-tpe-group" in text


def test_json_holds_the_same_figures(report: Report) -> None:
    content = json.loads(report.to_json())

    assert content["versions"] == {"optuna": "5"}
    assert content["regrets"]["branin"]["50"]["auto"] == 1.0
    assert [cell["verdict"] for cell in content["cells"]] == ["won", "won"]
    flat = next(table for table in content["ranks"] if table["group"] == "flat")
    assert flat["mean_ranks"] == {"auto": 1, "TPE": 2, "optuna-tpe": 3, "optuna-random": 4}


def test_point_that_never_kept_its_limits_is_no_number_in_json() -> None:
    runs = Runs()
    for name in ("auto", "TPE"):
        runs.add(Run(name, "thin", 0, 50, ()))

    content = json.loads(report_of(runs, chosen_problems(["thin"]), [50]).to_json())

    assert content["regrets"]["thin"]["50"] == {"auto": None, "TPE": None}


def test_peers_with_too_few_seeds_are_named() -> None:
    runs = Runs()
    for name, seeds in {"auto": 6, "optuna-tpe": 6, "optuna-gp": 2}.items():
        for seed in range(seeds):
            runs.add(Run(name, "branin", seed, 50, ((1, 1.0),)))

    text = report_of(runs, chosen_problems(["branin"]), [50], judge=["auto"]).to_text()

    assert "where they have fewer than 6 seeds: optuna-gp\n" in text


def test_peers_are_recognised_by_their_names() -> None:
    assert is_peer("optuna-tpe")
    assert is_peer("smac")
    assert not is_peer("SMAC")
