"""How much lower is the regret after 20 trials with a warm start by rank than with a cold one?

Families of ten related tasks: each task is searched with the results of the nine others, 30 trials
of `auto` each, and without. The regret of a task is the median over the seeds; a figure is the
median over the tasks of the ratio of the two regrets, beside the largest ratio. The targets: at
most 0.6, and on no task above 1.1. Families marked `judged` did not serve to choose the settings;
with those of `opposite` and `unrelated` nothing can be gained.

./dev bench transfer           20 seeds; SEEDS, FAMILIES and TUNERS in the environment choose less
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import median
from typing import Any, Final

import numpy as np

from nni.hpo import Study
from nni.hpo.search.earlier_results import WarmStartWay
from tests.benchmarks.figures import Figure, at_most, print_figures
from tests.benchmarks.transfer_families import CHOSEN_BY, NAMES, TASKS, Objective, family

TRIALS: Final = 20
EARLIER_TRIALS: Final = 30
SEEDS: Final = int(os.environ.get("SEEDS", "20"))
FAMILIES: Final = os.environ.get("FAMILIES", ",".join(NAMES)).split(",")
TUNERS: Final = os.environ.get("TUNERS", "auto,TPE").split(",")
MEDIAN_RATIO: Final = 0.6
WORST_RATIO: Final = 1.1
LEAST_REGRET: Final = 1e-12
"""Added to both regrets: of two that are 0 the ratio is 1."""

Samples = list[dict[str, Any]]


def searched(
    space: dict[str, Any],
    objective: Objective,
    tuner: str,
    seed: int,
    trials: int,
    earlier: Sequence[Samples] = (),
) -> Samples:
    """Return the samples of a search."""
    way: WarmStartWay = "rank" if earlier else "value"
    study = Study(space, tuner=tuner, warm_start_from=list(earlier), warm_start_by=way, seed=seed)
    samples: Samples = []
    for _ in range(trials):
        trial = study.ask()
        value = objective(trial.parameters)
        samples.append({"parameter": trial.parameters, "value": value})
        study.tell(trial, value)
    return samples


def earlier_samples(name: str, task: int) -> Samples:
    """Return the results of a task that the searches of the other tasks learn."""
    chosen = family(name)
    sign = -1.0 if chosen.relation == "opposite" else 1.0

    def objective(parameters: Mapping[str, Any]) -> float:
        return sign * chosen.tasks[task].objective(parameters)

    samples = searched(chosen.space, objective, "auto", 1000 + task, EARLIER_TRIALS)
    if chosen.relation != "unrelated":
        return samples
    places = np.random.default_rng(task).permutation(len(samples))
    return [
        {**sample, "value": samples[place]["value"]}
        for sample, place in zip(samples, places, strict=True)
    ]


def regrets(
    name: str, tuner: str, earlier: Sequence[Samples], pair: tuple[int, int]
) -> tuple[float, float]:
    """Return the cold and the warm regret of a task and seed."""
    task, seed = pair
    others = [samples for number, samples in enumerate(earlier) if number != task]
    chosen = family(name)
    searched_task = chosen.tasks[task]
    cold, warm = (
        searched(chosen.space, searched_task.objective, tuner, seed, TRIALS, given)
        for given in ((), others)
    )
    cold_regret, warm_regret = (best(samples) - searched_task.optimum for samples in (cold, warm))
    return max(cold_regret, 0.0), max(warm_regret, 0.0)  # an optimum may be found by descent


def best(samples: Samples) -> float:
    """Return the least value."""
    return min(float(sample["value"]) for sample in samples)


def figures(pool: ProcessPoolExecutor, name: str, tuners: Sequence[str]) -> list[Figure]:
    """Return the figures of a family, and print each task's regrets."""
    earlier = list(pool.map(partial(earlier_samples, name), range(TASKS)))
    found: list[Figure] = []
    for tuner in tuners:
        pairs = [(task, seed) for task in range(TASKS) for seed in range(SEEDS)]
        both = list(pool.map(partial(regrets, name, tuner, earlier), pairs))
        ratios = []
        for task in range(TASKS):
            own = both[task * SEEDS : (task + 1) * SEEDS]
            cold, warm = (median(column) for column in zip(*own, strict=True))
            ratios.append((warm + LEAST_REGRET) / (cold + LEAST_REGRET))
            print(f"   {name} {tuner} task {task}: cold {cold:.3g}, warm {warm:.3g}")
        note = f"{'chosen by' if name in CHOSEN_BY else 'judged'}, {SEEDS} seeds"
        if family(name).relation == "related":
            what = f"{name}, {tuner}: warm / cold regret, median of tasks"
            found.append(at_most(what, median(ratios), MEDIAN_RATIO, note=note))
        what = f"{name}, {tuner}: warm / cold regret, worst task"
        found.append(at_most(what, max(ratios), WORST_RATIO, note=note))
        sys.stdout.flush()
    return found


def main() -> None:
    """Measure all families, and print the table."""
    found: list[Figure] = []
    with ProcessPoolExecutor() as pool:
        for name in FAMILIES:
            found += figures(pool, name, TUNERS)
    print_figures(found)


if __name__ == "__main__":
    main()
