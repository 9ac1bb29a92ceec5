"""How many trials are lost where the search space has a failing region, and is the best one good?

60 trials on problems of which a third to a half fails, the optimum at the border; and on one whose
trials fail at random, which must cost nothing. Lost trials are those after the first 15. Target:
at most 15 % where the region can be learnt. `--seeds N`, `--tuners NAME ...` change the size.
"""

import argparse
import math
import random
import sys
from collections.abc import Callable
from statistics import fmean, median
from typing import Any, Final

from threadpoolctl import threadpool_limits

from nni.hpo import Study
from nni_benchmark import functions
from tests.benchmarks.measure import print_header

TRIALS: Final = 60
COLD: Final = 15
RANDOM_SHARE: Final = 0.2
TUNERS: Final = ("Random", "TPE", "auto", "GPTuner", "MetisTuner", "DNGOTuner", "SMAC")

Point = dict[str, Any]
Loss = Callable[[Point], float | None]

SQUARE: Final = {name: {"_type": "uniform", "_value": [0, 1]} for name in "xy"}


def corner(point: Point) -> float | None:
    """Fail in the corner of a square, 32 % of it, in which the loss has its minimum."""
    if point["x"] > 0.43 and point["y"] > 0.43:
        return None
    return float((point["x"] - 0.8) ** 2 + (point["y"] - 0.8) ** 2 - 0.37**2)


def disc(point: Point) -> float | None:
    """Fail in a disc, 32 % of a square, around the minimum of the loss."""
    away = (point["x"] - 0.7) ** 2 + (point["y"] - 0.6) ** 2
    return None if away < 0.32**2 else float(away - 0.32**2 + 0.3 * (point["x"] - 0.2) ** 2)


def triangle(point: Point) -> float | None:
    """Fail above a diagonal of Branin's function, 32 % of the square."""
    return None if point["x"] + point["y"] > 1.2 else branin(point)


def branin(point: Point) -> float:
    """Return the regret of Branin's function on the unit square."""
    return functions.branin(15 * point["x"] - 5, 15 * point["y"]) - 0.397887


def at_random(seed: int) -> Loss:
    """Return Branin's function whose trials fail at random."""
    draws = random.Random(seed)
    return lambda point: None if draws.random() < RANDOM_SHARE else branin(point)


PROBLEMS: Final[dict[str, Callable[[int], Loss]]] = {
    "corner": lambda _: corner,
    "disc": lambda _: disc,
    "triangle": lambda _: triangle,
    "at random": at_random,
}


def search(tuner: str, loss: Loss, seed: int) -> tuple[int, float]:
    """Return the trials lost after the cold start, and the least loss."""
    study = Study(SQUARE, tuner=tuner, seed=seed)
    values: list[float | None] = []
    for _ in range(TRIALS):
        trial = study.ask()
        values.append(loss(trial.parameters))
        study.tell(trial, values[-1])
    known = [value for value in values if value is not None]
    return values[COLD:].count(None), min(known, default=math.inf)


def main() -> int:
    parser = argparse.ArgumentParser("./dev bench failed_trials", description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--tuners", nargs="+", default=TUNERS)
    options = parser.parse_args()
    print_header(str(__doc__), seed=0, packages=["numpy"])
    print(f"{'problem':10} {'tuner':11} {'lost':>6} {'median best':>12} {'worst':>10}")
    with threadpool_limits(1):
        for problem, made in PROBLEMS.items():
            for tuner in options.tuners:
                found = [search(tuner, made(seed), seed) for seed in range(options.seeds)]
                lost = fmean(one for one, _ in found) / (TRIALS - COLD)
                best = [loss for _, loss in found]
                print(f"{problem:10} {tuner:11} {lost:6.0%} {median(best):12.3g} {max(best):10.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
