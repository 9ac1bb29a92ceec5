from typing import Any

import lightgbm
import numpy as np
import pytest

from nni.integrations import LightGBMCallback
from tests.support.stopping_trial import StoppingTrial
from tests.support.trial_metrics import Metrics, metrics

__all__ = ["metrics"]  # a fixture

SETTINGS = {"objective": "regression", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 2}
SAMPLES = np.random.default_rng(0).normal(size=(60, 3))
TARGETS = SAMPLES.sum(1)


def train(*callbacks: Any, rounds: int = 5) -> lightgbm.Booster:
    training = lightgbm.Dataset(SAMPLES[:40], TARGETS[:40])
    validation = lightgbm.Dataset(SAMPLES[40:], TARGETS[40:], reference=training)
    return lightgbm.train(
        {**SETTINGS, "metric": ["l2", "l1"]},
        training,
        rounds,
        valid_sets=[validation],
        callbacks=[*callbacks],
    )


def test_each_iteration_and_the_end_are_reported(metrics: Metrics) -> None:
    recorded: dict[str, Any] = {}
    train(LightGBMCallback("valid_0-l2"), lightgbm.record_evaluation(recorded))

    values = recorded["valid_0"]["l2"]
    assert metrics == [*(("PERIODICAL", value) for value in values), ("FINAL", values[-1])]


def test_every_second_iteration_is_reported_under_the_given_keys(metrics: Metrics) -> None:
    train(LightGBMCallback({"default": "l2", "error": "l1"}, every=2))

    assert [kind for kind, _ in metrics] == ["PERIODICAL"] * 3 + ["FINAL"]
    assert metrics[0][1].keys() == {"default", "error"}


def test_the_trial_stops_the_training() -> None:
    trial = StoppingTrial()
    booster = train(LightGBMCallback("l2", trial=trial), rounds=9)

    assert len(trial.reports) == 2
    assert booster.current_iteration() == 2


def test_after_early_stopping_finish_reports_the_result(metrics: Metrics) -> None:
    callback = LightGBMCallback("l2", final="min")
    train(callback, lightgbm.early_stopping(1, min_delta=10, verbose=False))
    before = metrics.copy()

    callback.finish()

    assert [kind for kind, _ in before] == ["PERIODICAL"] * 2
    assert metrics[2:] == [("FINAL", callback.result)]


def test_means_of_a_cross_validation_are_reported(metrics: Metrics) -> None:
    found = lightgbm.cv(
        SETTINGS,
        lightgbm.Dataset(SAMPLES, TARGETS),
        3,
        nfold=3,
        stratified=False,
        callbacks=[LightGBMCallback("l2")],
    )

    assert [value for _, value in metrics[:3]] == found["valid l2-mean"]


def test_estimators_take_the_callback(metrics: Metrics) -> None:
    estimator = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1)

    callbacks: list[Any] = [LightGBMCallback("l2")]
    estimator.fit(SAMPLES, TARGETS, eval_X=SAMPLES, eval_y=TARGETS, callbacks=callbacks)

    assert len(metrics) == 3


def test_a_metric_without_validation_data_is_an_error(metrics: Metrics) -> None:
    data = lightgbm.Dataset(SAMPLES, TARGETS)

    with pytest.raises(ValueError, match="got 'l2'; it logs none"):
        lightgbm.train(SETTINGS, data, 1, callbacks=[LightGBMCallback("l2")])
