"""`nnictl` against the real services: results in, results out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.experiments import INSTANT, PATIENT, write_experiment
from tests.support.nnictl import Nnictl, nnictl, shared_shape
from tests.support.wait import until

__all__ = ["nnictl", "shared_shape"]  # fixtures

SOME_WITHOUT_RESULT = INSTANT.replace(
    "nni.report_final_result(", "if parameters['x'] < 0.7: nni.report_final_result("
)


def done(nnictl: Nnictl, config: Path) -> str:
    experiment_id = nnictl.create(config)
    nnictl.shape.wait_for(experiment_id, "DONE")
    return experiment_id


@pytest.mark.claim("platform", 46)
def test_best_and_worst_trials_are_those_that_ended_with_a_result(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    config = write_experiment(tmp_path, SOME_WITHOUT_RESULT, maxTrialNumber=12, seed=1)
    experiment_id = done(nnictl, config)
    values = sorted(
        trial["finalMetricData"][0]["data"]
        for trial in nnictl.trials(experiment_id)
        if trial["finalMetricData"]
    )

    head = nnictl.json("trial", "ls", experiment_id, "--head", 3, "--json")
    tail = nnictl.json("trial", "ls", experiment_id, "--tail", 3, "--json")

    assert len(values) < 12
    assert [trial["finalMetricData"][0]["data"] for trial in head] == values[:-4:-1]
    assert [trial["finalMetricData"][0]["data"] for trial in tail] == values[:3]


@pytest.mark.claim("platform", 46)
def test_running_trials_are_neither_best_nor_worst(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path, PATIENT))
    until(lambda: nnictl.trials(experiment_id), 60, "a trial")

    assert nnictl.json("trial", "ls", "--head", 3, "--json") == []


@pytest.mark.claim("platform", 49)
@pytest.mark.claim("hpo", 48)
def test_exported_results_can_be_imported_as_they_are(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = done(nnictl, write_experiment(tmp_path))
    path = tmp_path / "out.json"
    nnictl("experiment", "export", experiment_id, "--filename", path, "--type", "json", "-i")
    exported = json.loads(path.read_text())

    other = nnictl.create(
        write_experiment(tmp_path / "other", PATIENT, tuner={"name": "TPE"}, trialConcurrency=1)
    )
    nnictl("experiment", "import", other, "-f", path)

    for record in exported:
        assert record["value"] == (record["parameter"]["x"] - 0.3) ** 2
        assert record["intermediate"] == [record["parameter"]["x"]]
    assert len(exported) == 5
    assert nnictl.status(other)["errors"] == []


@pytest.mark.claim("platform", 49)
@pytest.mark.claim("platform", 25)
def test_csv_has_one_row_for_each_trial_with_a_result(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path, SOME_WITHOUT_RESULT, maxTrialNumber=8, seed=1)
    experiment_id = done(nnictl, config)
    trials = nnictl.trials(experiment_id)

    nnictl("experiment", "export", "-f", tmp_path / "out.csv", "--type", "csv", "--intermediate")

    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {trial["status"] for trial in trials} == {"SUCCEEDED"}
    assert [row["id"] for row in rows] == [
        trial["trialJobId"] for trial in trials if trial["finalMetricData"]
    ]
    assert list(rows[0]) == ["id", "x", "reward", "intermediate"]
    nnictl("experiment", "export", "-f", tmp_path / "o", "--type", "xml", expect=2)


def test_import_of_a_missing_or_broken_file_is_refused(nnictl: Nnictl, tmp_path: Path) -> None:
    nnictl.create(write_experiment(tmp_path, PATIENT))
    (tmp_path / "broken.json").write_text("[")

    missing = nnictl("experiment", "import", "-f", tmp_path / "nope.json", expect=2)
    broken = nnictl("experiment", "import", "-f", tmp_path / "broken.json", expect=2)

    assert "existing file" in missing.stderr
    assert "broken.json: line 1, column 2 is no valid JSON" in broken.stderr


def test_trial_with_own_parameters_runs_with_them(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path, PATIENT, trialConcurrency=1, maxTrialNumber=3)
    experiment_id = nnictl.create(config)
    first = until(
        lambda: [t for t in nnictl.trials(experiment_id) if t["status"] == "RUNNING"], 60
    )[0]["trialJobId"]

    nnictl("trial", "add", experiment_id, "--parameters", '{"x": 0.125}')
    nnictl("trial", "kill", experiment_id, "-T", first)

    def own() -> list[dict[str, Any]]:
        return [
            trial
            for trial in nnictl.trials(experiment_id)
            if trial["hyperParameters"][0]["parameters"] == {"x": 0.125}
            and trial["status"] == "RUNNING"
        ]

    (trial,) = until(own, 60, "the trial of our own to run")
    assert trial["hyperParameters"][0]["parameter_source"] == "customized"
    states = {one["trialJobId"]: one["status"] for one in nnictl.trials(experiment_id)}
    assert states[first] == "USER_CANCELED"


def test_logs_of_trials_are_where_the_command_says(nnictl: Nnictl, tmp_path: Path) -> None:
    script = INSTANT + "print('a line of the trial')\n"
    experiment_id = done(nnictl, write_experiment(tmp_path, script, maxTrialNumber=1))
    trial = nnictl.trials(experiment_id)[0]["trialJobId"]

    line = nnictl("log", "trial", experiment_id, "--trial_id", trial).stdout

    assert "a line of the trial" in Path(line.split(": ", 1)[1].strip()).read_text()
    assert trial in nnictl("log", "trial", experiment_id).stdout
    nnictl("log", "trial", experiment_id, "-T", "nope0", expect=1)
