from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from nni.cli.data import csv_text
from nni.experiment import TrialJob
from nni.experiment.records import TrialHyperParameters, TrialMetricData
from nni.hpo import Study, optimize
from nni.plot.trials import PlottedTrial, finished, flat, numbers, trials_of

SPACE = {"x": {"_type": "choice", "_value": [1, 2]}}
RECORDS = [
    {
        "parameter": {"x": 1, "model": {"_name": "mlp", "depth": 2}},
        "value": {"default": 0.5, "size": 9},
        "id": "aBcDe",
        "intermediate": [0.7, 0.5],
    },
    {"parameter": {"x": 2, "model": {"_name": "linear"}}, "value": 0.25, "id": "fGhIj"},
]


class RecordedExperiment:
    """What an experiment answers: one trial that ended, and one that runs."""

    def list_trial_jobs(self) -> list[TrialJob]:
        parameters = [TrialHyperParameters(0, {"x": 1}, "algorithm", 0)]
        final = [TrialMetricData(0, "aBcDe", "0", "FINAL", 0, 0.5)]
        return [
            TrialJob("aBcDe", "SUCCEEDED", parameters, "", 1000, 3500, final, "", 0),
            TrialJob("fGhIj", "RUNNING", parameters, "", 2000, None, [], "", 1),
        ]

    def get_job_metrics(self) -> dict[str, list[TrialMetricData]]:
        reports = [TrialMetricData(0, "aBcDe", "0", "PERIODICAL", 0, 0.75)]
        final = [TrialMetricData(0, "aBcDe", "0", "FINAL", 0, 0.5)]
        return {"aBcDe": reports + final}


def test_study_gives_its_results() -> None:
    study = Study(SPACE, tuner="GridSearch")
    for _ in range(2):
        trial = study.ask()
        study.tell(trial, {"default": trial.parameters["x"], "size": 3})

    assert [one.values for one in trials_of(study)] == [
        {"default": 1.0, "size": 3.0},
        {"default": 2.0, "size": 3.0},
    ]


def test_result_of_optimize_has_curves_and_failures() -> None:
    def objective(parameters: dict[str, int]) -> object:
        if parameters["x"] == 2:
            raise RuntimeError("no")
        yield 3.0
        yield 1.0

    first, second = trials_of(optimize(objective, SPACE, tuner="GridSearch", trials=2))

    assert (first.status, first.curve(), first.value()) == ("SUCCEEDED", [3.0, 1.0], 1.0)
    assert (second.status, second.value()) == ("FAILED", None)


def test_experiment_has_times() -> None:
    first, second = trials_of(RecordedExperiment())

    assert first.parameters == {"x": 1}
    assert (first.started_s, first.ended_s, first.curve()) == (1.0, 3.5, [0.75])
    assert (second.status, second.ended_s, second.value()) == ("RUNNING", None, None)


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_exported_file_is_read_back(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"trials.{kind}"
    path.write_text(json.dumps(RECORDS) if kind == "json" else csv_text(RECORDS), "utf-8")

    first, second = trials_of(path)

    assert first.values == {"default": 0.5, "size": 9.0}
    assert first.curve() == [0.7, 0.5]
    assert first.parameters["x"] == 1
    assert (second.id, second.value()) == ("fGhIj", 0.25)


def test_value_of_several_lines_in_an_exported_table_is_one_value(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    prompt = "first line\nsecond\u2028line"
    path.write_text(csv_text([{**RECORDS[0], "parameter": {"prompt": prompt}}]), "utf-8")

    (trial,) = trials_of(path)

    assert trial.parameters == {"prompt": prompt}
    assert trial.value() == 0.5


@pytest.mark.parametrize("text", ["{}", "[1]", "no", '[{"value": 1}]'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trials.json"
    path.write_text(text, "utf-8")

    with pytest.raises(ValueError, match="source must be"):
        trials_of(path)


def test_another_source_is_refused() -> None:
    with pytest.raises(TypeError, match=r"source must be a Study.* got int"):
        trials_of(3)


def test_only_finite_numbers_are_results() -> None:
    report = {"a": 1, "b": math.nan, "c": "text", "d": True, "e": math.inf}

    assert numbers(report) == {"a": 1.0}
    assert numbers(None) == {}


def test_lists_have_a_place_as_text() -> None:
    assert flat({"kernel": [3, 3], "none": None}) == {"kernel": "[3, 3]", "none": None}


def test_unknown_metric_names_the_known_ones() -> None:
    trials = [PlottedTrial(0, {}, {"loss": 1.0})]

    with pytest.raises(ValueError, match=r"metric must be one .*\(loss\), got 'default'"):
        finished(trials, "default")


def test_texts_that_an_export_has_guarded_are_those_of_the_trials(tmp_path: Path) -> None:
    parameter = {"=a": "=1+1", "b": "'=1", "c": "'tis", "d": -1.5}
    path = tmp_path / "trials.csv"
    path.write_text(csv_text([{**RECORDS[0], "parameter": parameter}]), "utf-8", newline="")

    (trial,) = trials_of(path)

    assert trial.parameters == parameter
