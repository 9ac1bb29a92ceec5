from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nni.integrations import CatBoostCallback
from tests.support.stopping_trial import StoppingTrial
from tests.support.trial_metrics import Metrics, metrics

__all__ = ["metrics"]  # a fixture

SAMPLES = np.random.default_rng(0).normal(size=(60, 3))
TARGETS = SAMPLES.sum(1)


def iteration(number: int, *values: float) -> Any:
    return SimpleNamespace(iteration=number, metrics={"validation": {"RMSE": list(values)}})


def fit(callback: CatBoostCallback, folder: Path) -> Any:
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(
        iterations=6, depth=2, thread_count=1, random_seed=0, train_dir=str(folder)
    )
    return model.fit(
        SAMPLES[:40],
        TARGETS[:40],
        eval_set=(SAMPLES[40:], TARGETS[40:]),
        callbacks=[callback],
        verbose=False,
    )


def test_iterations_are_reported_in_the_period_and_the_result_at_the_end(metrics: Metrics) -> None:
    callback = CatBoostCallback("RMSE", every=2, final="min")

    goes_on = [callback.after_iteration(iteration(n, 9.0, 5.0 - n)) for n in (1, 2, 3)]
    callback.finish()

    assert all(goes_on)
    assert metrics == [("PERIODICAL", 4.0), ("PERIODICAL", 2.0), ("FINAL", 2.0)]


def test_a_trial_that_is_to_stop_ends_the_iterations() -> None:
    callback = CatBoostCallback("validation-RMSE", trial=StoppingTrial())

    assert [callback.after_iteration(iteration(n, 1.0)) for n in (1, 2)] == [True, False]


def test_the_library_calls_it_after_each_iteration(metrics: Metrics, tmp_path: Path) -> None:
    model = fit(CatBoostCallback("validation-RMSE"), tmp_path)

    history = model.get_evals_result()["validation"]["RMSE"]
    assert [value for _, value in metrics] == pytest.approx(history)


def test_the_library_stops_with_the_trial(tmp_path: Path) -> None:
    trial = StoppingTrial()
    model = fit(CatBoostCallback("validation-RMSE", trial=trial), tmp_path)

    assert len(trial.reports) == 2
    assert model.tree_count_ == 2
