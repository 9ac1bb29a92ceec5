"""Is the recommended trial better than the luckiest one, and does a robust search find better ones?

60 trials on problems whose results have no noise, or normal, heavy-tailed or growing noise. Columns
are medians of the regret without noise: of the trial with the best measured value, of the
recommended one, and of the best trial of the search, whichever it is. `auto+robust` is `auto` with
`robust: true`; `Optuna TPE` recommends its best measured value. `--seeds N`, `--trials N`,
`--tuners NAME ...` and `--problems WORD ...` change the size.
"""

import argparse
import itertools
import random
import sys
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any, Final

import optuna
from threadpoolctl import threadpool_limits

from nni.hpo import Study
from nni_benchmark import functions
from tests.benchmarks.measure import print_header

TRIALS: Final = 60
TUNERS: Final = ("auto", "auto+robust", "GPTuner", "GPTuner+robust", "Optuna TPE")

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


def exact(draws: random.Random, loss: float) -> float:
    """Return no noise."""
    del draws, loss
    return 0.0


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
    for noise in (exact, normal, heavy, growing)
}


def search(problem: str, tuner: str, seed: int, trials: int) -> tuple[float, float, float]:
    """Return the regrets of the best measured, the recommended and the best trial."""
    loss, size, noise = PROBLEMS[problem]
    draws, seen = random.Random(seed), list[float]()

    def measured(point: Point) -> float:
        seen.append(loss(point))
        return seen[-1] + noise(draws, seen[-1])

    names = [f"x{index}" for index in range(size)]
    run = by_optuna if tuner == "Optuna TPE" else by_nni
    best, recommended = run(names, measured, tuner, seed, trials)
    return loss(best), loss(recommended), min(seen)


def by_nni(
    names: list[str], measured: Loss, tuner: str, seed: int, trials: int
) -> tuple[Point, Point]:
    """Return the best measured and the recommended configuration of one of our tuners."""
    name, *robust = tuner.split("+")
    space = {one: {"_type": "uniform", "_value": [0, 1]} for one in names}
    arguments = {"robust": True} if robust else {}
    study = Study(space, tuner=name, tuner_args=arguments, seed=seed)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, measured(trial.parameters))
    return study.best_parameters, study.recommended.trial.parameters


def by_optuna(
    names: list[str], measured: Loss, tuner: str, seed: int, trials: int
) -> tuple[Point, Point]:
    """Return the best measured configuration of Optuna's TPE, twice."""
    del tuner
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(
        lambda trial: measured({one: trial.suggest_float(one, 0, 1) for one in names}), trials
    )
    return study.best_params, study.best_params


def main() -> int:
    parser = argparse.ArgumentParser("./dev bench noisy_results", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--tuners", nargs="+", default=TUNERS)
    parser.add_argument("--problems", nargs="+", default=[""], help="words of their names")
    options = parser.parse_args()
    print_header(str(__doc__), seed=0, packages=["numpy", "optuna"])
    print(f"{'problem':18} {'tuner':14} {'measured':>9} {'recommended':>12} {'best':>8}")
    wanted = [one for one in PROBLEMS if any(word in one for word in options.problems)]
    with threadpool_limits(1):
        for problem, tuner in itertools.product(wanted, options.tuners):
            found = [search(problem, tuner, seed, options.trials) for seed in range(options.seeds)]
            measured, recommended, best = (median(column) for column in zip(*found, strict=True))
            print(
                f"{problem:18} {tuner:14} {measured:9.2g} {recommended:12.2g} {best:8.2g}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
