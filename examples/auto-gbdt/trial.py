"""Train boosted trees of LightGBM on a text file, and report the error on another one."""

from pathlib import Path

import lightgbm
import numpy as np

import nni

DATA = Path(__file__).parent / "data"
ROUNDS = 20
PATIENCE = 5
"""Rounds without a smaller error, after which training ends."""
DEFAULTS = {
    "objective": "regression",
    "metric": "rmse",
    "num_leaves": 31,
    "learning_rate": 0.05,
    "feature_fraction": 0.9,
    "bagging_fraction": 0.8,
    "bagging_freq": 5,
    "num_threads": 1,  # trials that run side by side share the cores
    "seed": 0,
    "verbose": -1,
}


def load(name):
    """Return the features and the target of a file of `prepare.py`."""
    rows = np.loadtxt(DATA / name, delimiter="\t")
    return rows[:, 1:], rows[:, 0]


def error(parameters):
    """Return the error (RMSE) of trees with the given parameters, else with the usual ones."""
    settings = DEFAULTS | parameters
    features, target = load("regression.train")
    test_features, test_target = load("regression.test")
    training = lightgbm.Dataset(features, target)
    trees = lightgbm.train(
        settings,
        training,
        num_boost_round=ROUNDS,
        valid_sets=[lightgbm.Dataset(test_features, test_target, reference=training)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    predicted = trees.predict(test_features, num_iteration=trees.best_iteration)
    return float(np.sqrt(np.mean((predicted - test_target) ** 2)))


def main():
    nni.report_final_result(error(nni.get_next_parameter()))


if __name__ == "__main__":
    main()
