"""Is the recommended trial better than the luckiest one, where results are noisy?

60 trials on problems whose results have normal, heavy-tailed or growing noise. Columns are medians
of the regret without noise: of the trial with the best measured value, of the recommended one, and
of the best trial of the search, whichever it is. `--seeds N`, `--tuners NAME ...` change the size.
"""

import argparse
import math
import random
import sys
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any, Final

from threadpoolctl import threadpool_limits

from nni.hpo import Study
from nni_benchmark import functions
from tests.benchmarks.measure import print_header

TRIALS: Final = 60
TUNERS: Final = ("auto", "GPTuner")

Point = dict[str, Any]
Loss = Callable[[Point], float]
Noise = Callable[[random.Random, float], float]


def branin(point: Point) -> float:
    """Return the regret of Branin's function on the unit square."""
    return float(functions.branin(15 * point["x0"] - 5, 15 * point["x1"]) - 0.397887)


def valley(point: Point) -> float:
    """Return a bent valley of four dimensions, 0 at best."""
    x = [4 * point[f"x{index}"] - 2 for index in range(4)]
    bends = sum(5 * (right - left**2) ** 2 for left, right in pairwise(x))
    return float(bends + sum((one - 1) ** 2 for one in x))


def normal(draws: random.Random, loss: float) -> float:
    """Return noise of one deviation everywhere."""
    del loss
    return draws.gauss(0, 2)


def heavy(draws: random.Random, loss: float) -> float:
    """Return noise of which every tenth is ten times as large."""
    del loss
    return draws.gauss(0, 20 if draws.random() < 0.1 else 1)


def growing(draws: random.Random, loss: float) -> float:
    """Return noise that grows with the loss."""
    return draws.gauss(0, 0.5 + 0.2 * loss)


PROBLEMS: Final[dict[str, tuple[Loss, int, Noise]]] = {
    f"{loss.__name__}, {noise.__name__}": (loss, size, noise)
    for loss, size in ((branin, 2), (valley, 4))
    for noise in (normal, heavy, growing)
}


def search(problem: str, tuner: str, seed: int) -> tuple[float, float, float]:
    """Return the regrets of the best measured, the recommended and the best trial."""
    loss, size, noise = PROBLEMS[problem]
    space = {f"x{index}": {"_type": "uniform", "_value": [0, 1]} for index in range(size)}
    study, draws, least = Study(space, tuner=tuner, seed=seed), random.Random(seed), math.inf
    for _ in range(TRIALS):
        trial = study.ask()
        exact = loss(trial.parameters)
        least = min(least, exact)
        study.tell(trial, exact + noise(draws, exact))
    return loss(study.best_parameters), loss(study.recommended.trial.parameters), least


def main() -> int:
    parser = argparse.ArgumentParser("./dev bench noisy_results", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tuners", nargs="+", default=TUNERS)
    options = parser.parse_args()
    print_header(str(__doc__), seed=0, packages=["numpy"])
    print(f"{'problem':18} {'tuner':8} {'measured':>9} {'recommended':>12} {'best':>8}")
    with threadpool_limits(1):
        for problem in PROBLEMS:
            for tuner in options.tuners:
                found = [search(problem, tuner, seed) for seed in range(options.seeds)]
                measured, recommended, best = (
                    median(column) for column in zip(*found, strict=True)
                )
                print(f"{problem:18} {tuner:8} {measured:9.2g} {recommended:12.2g} {best:8.2g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
