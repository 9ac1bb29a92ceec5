from typing import Any

import numpy as np
import pytest

from tests.support.stopping_trial import StoppingTrial
from tests.support.trial_metrics import Metrics, metrics

xgboost = pytest.importorskip("xgboost")

from nni.integrations import XGBoostCallback  # noqa: E402 - needs the library

__all__ = ["metrics"]  # a fixture

SAMPLES = np.random.default_rng(0).normal(size=(60, 3))
TARGETS = SAMPLES.sum(1)
SETTINGS = {"nthread": 1, "max_depth": 2, "eval_metric": ["rmse", "mae"]}


def train(callback: Any, rounds: int = 4) -> Any:
    training = xgboost.DMatrix(SAMPLES[:40], TARGETS[:40])
    validation = xgboost.DMatrix(SAMPLES[40:], TARGETS[40:])
    history: dict[str, Any] = {}
    booster = xgboost.train(
        SETTINGS,
        training,
        rounds,
        evals=[(training, "train"), (validation, "validation")],
        evals_result=history,
        verbose_eval=False,
        callbacks=[callback],
    )
    return booster, history


def test_each_iteration_and_the_end_are_reported(metrics: Metrics) -> None:
    _, history = train(XGBoostCallback("validation-rmse"))

    values = history["validation"]["rmse"]
    assert metrics == [*(("PERIODICAL", value) for value in values), ("FINAL", values[-1])]


def test_every_third_iteration_is_reported(metrics: Metrics) -> None:
    train(XGBoostCallback("validation-rmse", every=3))

    assert [kind for kind, _ in metrics] == ["PERIODICAL"] * 2 + ["FINAL"]


def test_the_trial_stops_the_training() -> None:
    trial = StoppingTrial()
    booster, _ = train(XGBoostCallback({"default": "train-mae"}, trial=trial), rounds=9)

    assert len(trial.reports) == 2
    assert booster.num_boosted_rounds() == 2


def test_a_name_of_several_data_sets_is_an_error(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="got 'rmse'; it logs train-mae, train-rmse, validation-"):
        train(XGBoostCallback("rmse"))


def test_means_of_a_cross_validation_are_reported(metrics: Metrics) -> None:
    found = xgboost.cv(
        SETTINGS,
        xgboost.DMatrix(SAMPLES, TARGETS),
        3,
        as_pandas=False,
        callbacks=[XGBoostCallback("test-rmse")],
    )

    assert [value for _, value in metrics[:3]] == found["test-rmse-mean"]


def test_estimators_take_the_callback(metrics: Metrics) -> None:
    estimator = xgboost.XGBRegressor(n_estimators=2, n_jobs=1, callbacks=[XGBoostCallback("rmse")])

    estimator.fit(SAMPLES, TARGETS, eval_set=[(SAMPLES, TARGETS)], verbose=False)

    assert len(metrics) == 3
