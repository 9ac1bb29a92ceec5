"""What does cost-aware search gain where run times depend on the configuration?

Branin and Hartmann6 with run times that differ 100-fold along one parameter, increasing towards or
away from the optimum, and a table of trained models with their measured run times. Each search may
spend as much as 30 random trials do on average. Regret at a third and at all of that, medians over
the seeds: without costs, cost-aware, and cost-aware with the spending limit as its budget.
`--seeds N`, `--tuners NAME ...`, `--spend N` change the size.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from statistics import fmean, median
from typing import Any, Final

from threadpoolctl import threadpool_limits

from nni.hpo import Study
from nni.hpo.space.parser import parse_space
from nni_benchmark.problem import Problem
from nni_benchmark.suite import suite_problems
from nni_benchmark.tables import load_grid
from tests.benchmarks.measure import print_header

TUNERS: Final = ("Random", "auto")
SPEND: Final = 30
"""Random trials whose mean run time a search may spend."""
TABLE: Final = "digits300-boosting"
RATIO: Final = 100.0
DRAWS: Final = 2000
MOST_TRIALS: Final = 100
MODES: Final = ("no costs", "cost-aware", "with budget")

Point = Mapping[str, Any]


@dataclass(frozen=True)
class CostProblem:
    """Problem with the run time of each configuration."""

    problem: Problem
    seconds: Callable[[Point], float]

    def mean_s(self) -> float:
        """Return the mean run time of random configurations."""
        space, rng = parse_space(self.problem.space), Random(0)
        return fmean(self.seconds(space.draw(rng)) for _ in range(DRAWS))


def problems() -> dict[str, CostProblem]:
    """Return the problems by name."""
    suite, table = suite_problems(), load_grid(TABLE).leaves[""]
    branin, hartmann = suite["branin"], suite["hartmann6"]
    return {
        # One of the three optima is cheap, one is dear.
        "branin, cost of x0": CostProblem(branin, lambda p: RATIO ** share(branin, p, "x0")),
        # The optimum is at a share of 0.2 of x0 and 0.66 of x5.
        "hartmann6, cheap optimum": CostProblem(
            hartmann, lambda p: RATIO ** share(hartmann, p, "x0")
        ),
        "hartmann6, dear optimum": CostProblem(
            hartmann, lambda p: RATIO ** share(hartmann, p, "x5")
        ),
        f"{TABLE}, measured": CostProblem(suite[TABLE], lambda p: table.curve(dict(p)).step_s),
    }


def share(problem: Problem, point: Point, key: str) -> float:
    """Return the place of a parameter in its range, in [0, 1]."""
    low, high = problem.space[key]["_value"]
    return float((point[key] - low) / (high - low))


def regrets(
    problem: CostProblem, tuner: str, mode: str, seed: int, limit_s: float
) -> list[tuple[float, float]]:
    """Return the run time spent and the least regret so far, after each trial within the limit."""
    arguments: dict[str, Any] = {} if mode == MODES[0] else {"cost_aware": True}
    if mode == MODES[2]:
        arguments["cost_budget"] = limit_s
    study = Study(problem.problem.space, tuner=tuner, tuner_args=arguments, seed=seed)
    found: list[tuple[float, float]] = []
    spent_s, best = 0.0, math.inf
    while len(found) < MOST_TRIALS:
        trial = study.ask()
        seconds = problem.seconds(trial.parameters)
        spent_s += seconds
        if spent_s > limit_s:
            break
        loss = problem.problem.losses(trial.parameters)[0]
        study.tell(trial, loss, duration=seconds)
        best = min(best, loss - problem.problem.optimum)
        found.append((spent_s, best))
    return found


def regret_at(run: list[tuple[float, float]], limit_s: float) -> float:
    """Return the least regret of the trials that ended within a run time."""
    return min((regret for spent_s, regret in run if spent_s <= limit_s), default=math.inf)


def rows(tuners: list[str], seeds: int, spend: int) -> Iterator[str]:
    """Yield a line of figures for each problem, tuner and mode."""
    for (name, problem), tuner in itertools.product(problems().items(), tuners):
        limit_s = spend * problem.mean_s()
        for mode in MODES if tuner != "Random" else MODES[:1]:
            runs = [regrets(problem, tuner, mode, seed, limit_s) for seed in range(seeds)]
            cells = [median(regret_at(run, part * limit_s) for run in runs) for part in (1 / 3, 1)]
            trials = median(map(len, runs))
            yield (
                f"{name:28} {tuner:8} {mode:12}"
                + "".join(f" {cell:9.3g}" for cell in cells)
                + f" {trials:7.0f}"
            )


def main() -> int:
    parser = argparse.ArgumentParser("./dev bench cost_aware", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--spend", type=int, default=SPEND)
    parser.add_argument("--tuners", nargs="+", default=TUNERS)
    options = parser.parse_args()
    print_header(str(__doc__), seed=0, packages=["numpy"])
    print(f"{'problem':28} {'tuner':8} {'mode':12} {'a third':>9} {'all':>9} {'trials':>7}")
    with threadpool_limits(1):
        for line in rows(list(options.tuners), options.seeds, options.spend):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
