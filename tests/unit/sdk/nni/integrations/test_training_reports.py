import math
from typing import Any

import pytest

from nni.hpo import TrialReporter, optimize
from nni.integrations._training_reports import (
    FinalResult,
    TrainingReports,
    check_period,
    metrics_by_name,
)
from tests.support.trial_metrics import Metrics, metrics

__all__ = ["metrics"]  # a fixture


def test_a_step_and_the_end_report_to_the_trial_of_the_process(metrics: Metrics) -> None:
    reports = TrainingReports("loss")

    stops = [reports.step({"loss": loss, "other": 0}) for loss in (2.0, 3.0)]
    reports.finish()

    assert stops == [False, False]
    assert metrics == [("PERIODICAL", 2.0), ("PERIODICAL", 3.0), ("FINAL", 3.0)]


def test_names_by_key_are_reported_as_a_dict(metrics: Metrics) -> None:
    reports = TrainingReports({"default": "val_loss", "accuracy": "val_acc"})

    reports.step({"val_loss": 1.5, "val_acc": 0.25})

    assert metrics == [("PERIODICAL", {"default": 1.5, "accuracy": 0.25})]


@pytest.mark.parametrize(
    ("final", "result"), [("last", 2.0), ("min", 1.0), ("max", 3.0)], ids=["last", "min", "max"]
)
def test_the_result_is_the_report_that_was_asked_for(
    final: FinalResult, result: float, metrics: Metrics
) -> None:
    reports = TrainingReports("loss", final=final)

    for loss in (math.nan, 3.0, 1.0, math.nan, 2.0):
        reports.step({"loss": loss})
    reports.finish()

    assert metrics[-1] == ("FINAL", result)


def test_the_result_is_reported_once(metrics: Metrics) -> None:
    reports = TrainingReports("loss")

    reports.step({"loss": 1})
    reports.finish()
    reports.finish()

    assert metrics.count(("FINAL", 1.0)) == 1


def test_a_metric_has_a_short_name_where_one_data_set_has_it() -> None:
    found = metrics_by_name([("train", "l2", 1.0), ("valid", "l2", 2.0), ("valid", "auc", 0.5)])

    assert found == {"train-l2": 1.0, "valid-l2": 2.0, "valid-auc": 0.5, "auc": 0.5}


@pytest.mark.parametrize("every", [0, True, 1.5])
def test_a_period_that_is_no_number_of_iterations_is_an_error(every: Any) -> None:
    with pytest.raises(ValueError, match=f"every must be an integer >= 1, got {every!r}"):
        check_period(every)


def test_nothing_is_final_without_a_step(metrics: Metrics) -> None:
    TrainingReports("loss").finish()

    assert metrics == []


def test_a_trial_of_optimize_stops_the_training_and_gets_no_other_report(metrics: Metrics) -> None:
    steps: list[int] = []

    def objective(parameters: Any, trial: TrialReporter) -> Any:
        reports = TrainingReports("loss", trial)
        for step in range(10):
            steps.append(step)
            if reports.step({"loss": parameters["x"] * (step + 1)}):
                break
        reports.finish()
        return reports.result

    space = {"x": {"_type": "choice", "_value": [1, 2, 3, 4]}}
    found = optimize(objective, space, tuner="GridSearch", assessor="Medianstop", trials=4)

    assert metrics == []
    assert "EARLY_STOPPED" in {trial.status for trial in found.trials}
    assert len(steps) < 40
    assert found.best_value == 10


def test_a_missing_metric_is_named_beside_those_that_are_logged() -> None:
    with pytest.raises(ValueError, match=r"got 'acc'; it logs loss, time"):
        TrainingReports("acc").step({"time": 1, "loss": 2})
    with pytest.raises(ValueError, match="it logs none"):
        TrainingReports("acc").step({})


@pytest.mark.parametrize(
    ("metric", "final", "error", "text"),
    [
        (3, "last", TypeError, "a name or a dict of names, got 3"),
        ({}, "last", ValueError, "at least one metric"),
        ("loss", "best", ValueError, "final must be one of 'last', 'min', 'max', got 'best'"),
    ],
    ids=["number", "empty", "final"],
)
def test_a_wrong_argument_is_named(
    metric: Any, final: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        TrainingReports(metric, final=final)


def test_steps_of_an_earlier_attempt_count_for_the_result_only(metrics: Metrics) -> None:
    reports = TrainingReports({"default": "loss"}, final="min")
    reports.take_up({"loss": 1})
    reports.take_up({"accuracy": 0})
    reports.step({"loss": 2})
    reports.finish()

    assert metrics == [("PERIODICAL", {"default": 2}), ("FINAL", {"default": 1})]
