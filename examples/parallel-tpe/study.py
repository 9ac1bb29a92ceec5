"""Measure what trials that run at a time cost TPE, with and without a constant liar."""

import argparse
import csv
import math
from pathlib import Path
from statistics import fmean, pvariance

import numpy as np

from nni.hpo import Study

SPACES = {
    "Branin": {
        "x": {"_type": "uniform", "_value": [-5, 10]},
        "y": {"_type": "uniform", "_value": [0, 15]},
    },
    "mixture": {
        "x": {"_type": "uniform", "_value": [0, 10]},
        "y": {"_type": "uniform", "_value": [0, 10]},
    },
}
_random = np.random.default_rng(0)
CENTRES = _random.uniform(0, 10, size=(12, 2))
HEIGHTS = np.append(_random.uniform(0.3, 0.8, size=11), 1.0)
LIARS = {
    "without": {},
    "min": {"parallel_optimize": True, "constant_liar_type": "min"},
    "mean": {"parallel_optimize": True, "constant_liar_type": "mean"},
}


def branin(x, y):
    """Return Branin's function, above its minimum of 0.397887, which it has at three points."""
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.397887


def mixture(x, y):
    """Return how far the highest of twelve Gaussian hills is above a point."""
    distances = ((CENTRES - [x, y]) ** 2).sum(axis=1)
    return 1 - float((HEIGHTS * np.exp(-2 * distances)).max())


FUNCTIONS = {"Branin": branin, "mixture": mixture}


def best(name, liar, concurrency, trials, seed):
    """Return the best value of one search, whose trials end in the order in which they began."""
    study = Study(SPACES[name], tuner="TPE", tuner_args=LIARS[liar], seed=seed)
    running = []
    for _ in range(trials):
        if len(running) == concurrency:
            trial = running.pop(0)
            study.tell(trial, FUNCTIONS[name](**trial.parameters))
        running.append(study.ask())
    for trial in running:
        study.tell(trial, FUNCTIONS[name](**trial.parameters))
    return study.best_value


def plot(rows, file):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(FUNCTIONS), figsize=(5 * len(FUNCTIONS), 4))
    for name, axis in zip(FUNCTIONS, axes, strict=True):
        for liar in LIARS:
            line = [row for row in rows if row["function"] == name and row["liar"] == liar]
            axis.plot(
                [row["concurrency"] for row in line], [row["mean"] for row in line], label=liar
            )
        axis.set(title=name, xlabel="trials at a time", ylabel="mean of the best value")
    axes[0].legend(title="constant liar")
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=240)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[10, 40, 80])
    parser.add_argument("--csv", type=Path, default=Path("parallel-tpe.csv"))
    parser.add_argument("--plot", default="parallel-tpe.png")
    options = parser.parse_args()

    rows = []
    print(f"{'function':<10}{'at a time':>10}{'liar':>10}{'mean':>10}{'variance':>10}")
    for name in FUNCTIONS:
        for concurrency in options.concurrency:
            for liar in LIARS:
                values = [
                    best(name, liar, concurrency, options.trials, seed)
                    for seed in range(options.seeds)
                ]
                mean, variance = fmean(values), pvariance(values)
                rows.append(
                    {
                        "function": name,
                        "concurrency": concurrency,
                        "liar": liar,
                        "mean": mean,
                        "variance": variance,
                    }
                )
                print(
                    f"{name:<10}{concurrency:>10}{liar:>10}{mean:>10.4f}{variance:>10.4f}",
                    flush=True,
                )
    with options.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    plot(rows, options.plot)


if __name__ == "__main__":
    main()
