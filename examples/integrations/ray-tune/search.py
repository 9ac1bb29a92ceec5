"""Tune support vector machines for handwritten digits with Ray Tune, by proposals of NNI."""

import sys
from typing import Any

from ray import init, tune
from ray.tune.search import ConcurrencyLimiter
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from nni.integrations import NNISearch


def accuracy(config: dict[str, Any]) -> dict[str, float]:
    """Return the accuracy of the machine with this configuration on a third of the digits."""
    digits = load_digits()
    machine = SVC(C=config["C"], gamma=config["gamma"], kernel=config["kernel"])
    return {"accuracy": float(cross_val_score(machine, digits.data, digits.target, cv=3).mean())}


def main(trials: int = 30) -> None:
    """Search in as many processes as Ray has processors, at most four at a time."""
    init(include_dashboard=False, log_to_driver=False)
    tuner = tune.Tuner(
        accuracy,
        param_space={
            "C": tune.loguniform(1e-2, 1e3),
            "gamma": tune.loguniform(1e-5, 1),
            "kernel": tune.choice(["rbf", "sigmoid"]),
        },
        tune_config=tune.TuneConfig(
            metric="accuracy",
            mode="max",
            num_samples=trials,
            search_alg=ConcurrencyLimiter(NNISearch(tuner="TPE", seed=0), max_concurrent=4),
        ),
        run_config=tune.RunConfig(verbose=0),
    )
    best = tuner.fit().get_best_result()
    assert best.metrics is not None
    print(f"best of {trials} trials: {best.metrics['accuracy']:.3f} with {best.config}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
