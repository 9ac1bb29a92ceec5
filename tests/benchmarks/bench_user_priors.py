"""What does a user prior gain while little is known, and what does a wrong one cost?

Branin, Hartmann6 and two tables of trained models, each without a prior, with one near the optimum
(shifted by a tenth of each range), with the same in low confidence, and with a wrong one (shifted
by half of each range, in medium and high confidence). Regret after 10 and 30 trials, medians over
the seeds, beside Random. `--seeds N`, `--tuners NAME ...`, `--trials N` change the size.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, Final

from threadpoolctl import threadpool_limits

from nni.hpo import Study
from nni.hpo.encoding.columns import levels_of
from nni.hpo.space.domains import ChoiceDomain
from nni.hpo.space.parser import parse_space
from nni_benchmark.problem import Problem
from nni_benchmark.suite import suite_problems
from nni_benchmark.tables import load_grid
from tests.benchmarks.measure import print_header

AFTER: Final = (10, 30)
TUNERS: Final = ("Random", "TPE", "auto", "GPTuner")
TABLES: Final = ("digits300-svm", "breast_cancer-boosting")
GOOD_SHIFT: Final = 0.1
WRONG_SHIFT: Final = 0.5
PRIORS: Final[Mapping[str, tuple[float, str] | None]] = {
    "none": None,
    "good, low": (GOOD_SHIFT, "low"),
    "good": (GOOD_SHIFT, "medium"),
    "good, high": (GOOD_SHIFT, "high"),
    "wrong": (WRONG_SHIFT, "medium"),
    "wrong, high": (WRONG_SHIFT, "high"),
}

Point = dict[str, Any]


def best_points() -> dict[str, Point]:
    """Return an optimum of each problem."""
    hartmann = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
    found: dict[str, Point] = {
        "branin": {"x0": 3.141593, "x1": 2.275 / 15},
        "hartmann6": {f"x{place}": value for place, value in enumerate(hartmann)},
    }
    for name in TABLES:
        table = load_grid(name).leaves[""]
        points = itertools.product(*(axis.values for axis in table.axes))
        best, _ = min(zip(points, table.curves, strict=True), key=lambda pair: pair[1].values[-1])
        found[name] = dict(zip((axis.name for axis in table.axes), best, strict=True))
    return found


def with_priors(space: Point, best: Point, shift: float, confidence: str) -> Point:
    """Return a space with a prior of each parameter around a shifted optimum.

    Args:
        space: without nested choices.
        best: an optimum.
        shift: in shares of each range, towards its farther end; of 0.5 another option.
        confidence: of each prior.
    """
    (level,) = levels_of(parse_space(space))
    values: Point = {}
    for column in level.numeric:
        here = column.coordinate(best[column.parameter.key])
        there = here + shift if here < GOOD_SHIFT + 0.4 else here - shift
        values[column.parameter.key] = column.value(min(max(there, 0.0), 1.0))
    for choice in level.choices:
        assert isinstance(choice.domain, ChoiceDomain)
        at = choice.domain.position(best[choice.parameter.key])
        other = (at + 1) % len(choice.domain.options) if shift >= WRONG_SHIFT else at
        values[choice.parameter.key] = choice.domain.options[other]
    return {
        key: {**entry, "_prior": {"value": values[key], "confidence": confidence}}
        for key, entry in space.items()
    }


def regrets(problem: Problem, space: Point, tuner: str, seed: int, trials: int) -> list[float]:
    """Return the least regret after each trial."""
    study = Study(space, tuner=tuner, seed=seed)
    found: list[float] = []
    for _ in range(trials):
        trial = study.ask()
        loss = problem.losses(trial.parameters)[0]
        study.tell(trial, loss)
        found.append(min(loss - problem.optimum, found[-1] if found else float("inf")))
    return found


def rows(tuners: list[str], seeds: int, trials: int) -> Iterator[str]:
    """Yield a line of figures for each problem, tuner and prior."""
    problems, best = suite_problems(), best_points()
    for name, tuner in itertools.product(best, tuners):
        problem = problems[name]
        for prior, given in PRIORS.items():
            space = with_priors(problem.space, best[name], *given) if given else problem.space
            runs = [regrets(problem, space, tuner, seed, trials) for seed in range(seeds)]
            cells = [median(run[at - 1] for run in runs) for at in AFTER if at <= trials]
            yield f"{name:22} {tuner:8} {prior:12}" + "".join(f" {cell:9.3g}" for cell in cells)


def main() -> int:
    parser = argparse.ArgumentParser("./dev bench user_priors", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=max(AFTER))
    parser.add_argument("--tuners", nargs="+", default=TUNERS)
    options = parser.parse_args()
    print_header(str(__doc__), seed=0, packages=["numpy"])
    print(f"{'problem':22} {'tuner':8} {'prior':12}" + "".join(f" {at:9}" for at in AFTER))
    with threadpool_limits(1):
        for line in rows(list(options.tuners), options.seeds, options.trials):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
