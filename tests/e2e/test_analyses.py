"""Constraints between hyperparameters, importance and Pareto fronts through the real services."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.experiments import write_experiment
from tests.support.nnictl import Nnictl, nnictl, shared_shape
from tests.support.ports import free_port

__all__ = ["nnictl", "shared_shape"]  # fixtures

TRADE_OFF = """\
import nni

p = nni.get_next_parameter()
nni.report_final_result(
    {"default": 10 * p["width"] + p["layers"], "accuracy": p["width"] / 64, "cost": p["width"]}
)
"""
SPACE: dict[str, Any] = {
    "width": {"_type": "randint", "_value": [1, 64]},
    "layers": {"_type": "randint", "_value": [1, 64]},
    "_constraints": ["width * layers <= 512", {"_forbid": {"width": 1}}],
}


def done(nnictl: Nnictl, folder: Path, **changes: object) -> str:
    config = write_experiment(folder, TRADE_OFF, searchSpace=SPACE, maxTrialNumber=24, **changes)
    experiment_id = nnictl.create(config)
    nnictl.shape.wait_for(experiment_id, "DONE")
    return experiment_id


@pytest.mark.parametrize(
    "algorithm",
    [
        {"tuner": {"name": "TPE"}},
        {"tuner": {"name": "GPTuner"}},
        {"tuner": None, "advisor": {"name": "BOHB", "classArgs": {"max_budget": 9}}},
    ],
    ids=["TPE", "GPTuner", "BOHB"],
)
def test_every_trial_keeps_the_constraints(
    nnictl: Nnictl, tmp_path: Path, algorithm: dict[str, Any]
) -> None:
    experiment_id = done(nnictl, tmp_path, **algorithm)

    trials = nnictl.trials(experiment_id)

    points = [trial["hyperParameters"][0]["parameters"] for trial in trials]
    assert len(points) == 24
    assert all(p["width"] * p["layers"] <= 512 and p["width"] != 1 for p in points)


def test_points_of_users_are_checked(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = done(nnictl, tmp_path)
    data = tmp_path / "data.json"
    samples = [{"width": 60, "layers": 60}, {"width": 2, "layers": 2}]
    data.write_text(json.dumps([{"parameter": p, "value": 1} for p in samples]))
    nnictl("update", "trialnum", experiment_id, "--value", 30)

    refused = nnictl(
        "trial", "add", experiment_id, "-P", json.dumps({"width": 60, "layers": 60}), expect=2
    )
    imported = nnictl("experiment", "import", experiment_id, "--filename", data)

    assert "breaks the constraint width * layers <= 512" in refused.stderr
    assert "breaks the constraint width * layers <= 512 (sample 1)" in imported.stderr
    assert "1 of 2 samples are given" in imported.stdout


def test_constraints_that_allow_nothing_are_refused_at_once(nnictl: Nnictl, tmp_path: Path) -> None:
    space = {**SPACE, "_constraints": ["width > 100"]}
    config = write_experiment(tmp_path, TRADE_OFF, searchSpace=space)

    refused = nnictl("create", "--config", config, "--port", free_port(), expect=2)

    assert "none of 10000 draws keeps all constraints" in refused.stderr


def test_importance_names_what_matters_first(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = done(nnictl, tmp_path)

    printed = nnictl.json("experiment", "importance", experiment_id, "--json")
    shown = nnictl("experiment", "importance", experiment_id)

    assert printed["trials"] == 24
    assert printed["metric"] == "default"
    assert [item["name"] for item in printed["parameters"]] == ["width", "layers"]
    assert printed["parameters"][0]["share"] > 0.5
    assert shown.stdout.startswith("Parameter")


def test_pareto_front_shows_the_trade_off(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = done(nnictl, tmp_path)
    objectives = ["--objective", "accuracy:maximize", "--objective", "cost:minimize"]

    printed = nnictl.json("experiment", "pareto", experiment_id, *objectives, "--json")
    best = nnictl.json("experiment", "pareto", experiment_id, "--json")

    # Accuracy and cost rise together: no trial beats another one in both.
    assert len(printed["front"]) == printed["trials"] == 24
    assert [item["metric"] for item in printed["objectives"]] == ["accuracy", "cost"]
    values = [point["values"]["default"] for point in best["front"]]
    assert set(values) == {max(nnictl_value(trial) for trial in nnictl.trials(experiment_id))}


def nnictl_value(trial: dict[str, Any]) -> float:
    value: float = trial["finalMetricData"][0]["data"]["default"]
    return value


PLAIN_SPACE: dict[str, Any] = {
    "width": {"_type": "randint", "_value": [1, 4]},
    "layers": {"_type": "randint", "_value": [1, 4]},
}


def points(nnictl: Nnictl, experiment_id: str) -> list[dict[str, Any]]:
    return [t["hyperParameters"][0]["parameters"] for t in nnictl.trials(experiment_id)]


def test_search_section_orders_points_and_turns_duplicates_down(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    first = {"width": 3, "layers": 3}
    config = write_experiment(
        tmp_path,
        TRADE_OFF,
        searchSpace=PLAIN_SPACE,
        maxTrialNumber=20,
        search={"duplicates": "resample", "enqueue": [first]},
    )
    experiment_id = nnictl.create(config)
    nnictl.shape.wait_for(experiment_id, "NO_MORE_TRIAL", "DONE")

    found = points(nnictl, experiment_id)

    assert found[0] == first
    assert len({(p["width"], p["layers"]) for p in found}) == len(found) == 9


def test_a_search_goes_on_from_an_earlier_experiment_and_ends_early(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    earlier = done(nnictl, tmp_path / "earlier")
    config = write_experiment(
        tmp_path / "later",
        TRADE_OFF,
        searchSpace=SPACE,
        maxTrialNumber=200,
        trialConcurrency=1,
        tuner={"name": "TPE"},
        objectives=[{"metric": "cost", "mode": "minimize"}],
        search={"warmStartFrom": [earlier], "stop": {"target": 4}},
    )
    experiment_id = nnictl.create(config)
    nnictl.shape.wait_for(experiment_id, "NO_MORE_TRIAL", "DONE")

    found = points(nnictl, experiment_id)

    assert found[-1]["width"] <= 4
    assert all(point["width"] > 4 for point in found[:-1])
    # 24 earlier results lead to small widths; alone, one draw of 20 has one of 2, 3 or 4.
    assert len(found) <= 20
    assert nnictl.status(experiment_id)["errors"] == []


@pytest.mark.parametrize("tuner", ["TPE", "GPTuner"])
def test_several_objectives_are_searched_for_a_front(
    nnictl: Nnictl, tmp_path: Path, tuner: str
) -> None:
    # GPTuner takes words only where there are several objectives or limits.
    space = {**SPACE, "kind": {"_type": "choice", "_value": ["a", "b"]}}
    objectives = [
        {"metric": "accuracy", "mode": "maximize"},
        {"metric": "cost", "mode": "minimize"},
    ]
    limits = [{"metric": "cost", "max": 32}]
    config = write_experiment(
        tmp_path,
        TRADE_OFF,
        searchSpace=space,
        maxTrialNumber=24,
        tuner={"name": tuner},
        objectives=objectives,
        constraints=limits,
    )
    experiment_id = nnictl.create(config)
    nnictl.shape.wait_for(experiment_id, "DONE")

    printed = nnictl.json("experiment", "pareto", experiment_id, "--json")

    assert printed["objectives"] == objectives
    assert printed["infeasible"] + len(printed["front"]) == 24
    assert all(point["values"]["cost"] <= 32 for point in printed["front"])
    assert nnictl.status(experiment_id)["errors"] == []
    replayed = nnictl.json("experiment", "replay", experiment_id, "--json")
    assert (replayed["suggestions"], replayed["equal"]) == (24, 24)
