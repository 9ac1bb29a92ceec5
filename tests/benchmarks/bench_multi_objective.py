"""How much of the objective space is dominated after 200 trials, with two objectives?

Hypervolume up to a reference point, median of the seeds, larger is better; NSGA-II and TPE of
Optuna answer the same question in the same run. `--seeds N --trials N` change the size, `--process`
adds Optuna's Gaussian process, which takes seconds an ask.
"""

import argparse
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import optuna

from nni.hpo import Study
from nni.hpo.pareto import pareto_front
from tests.benchmarks.measure import print_figure, print_header

Point = dict[str, Any]
Pair = tuple[float, float]
MODES = {"f1": "minimize", "f2": "minimize"}


@dataclass(frozen=True, slots=True)
class Problem:
    """Two losses over a flat space."""

    objective: Callable[[Point], Pair]
    space: dict[str, Any]
    reference: Pair


def unit(count: int) -> dict[str, Any]:
    return {f"x{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(count)}


def zdt1(point: Point) -> Pair:
    first, rest = point["x0"], [point[f"x{i}"] for i in range(1, len(point))]
    g = 1 + 9 * sum(rest) / len(rest)
    return first, g * (1 - math.sqrt(first / g))


def zdt2(point: Point) -> Pair:
    first, rest = point["x0"], [point[f"x{i}"] for i in range(1, len(point))]
    g = 1 + 9 * sum(rest) / len(rest)
    return first, g * (1 - (first / g) ** 2)


def zdt3(point: Point) -> Pair:
    first, rest = point["x0"], [point[f"x{i}"] for i in range(1, len(point))]
    g = 1 + 9 * sum(rest) / len(rest)
    return first, g * (1 - math.sqrt(first / g) - first / g * math.sin(10 * math.pi * first))


def network(point: Point) -> Pair:
    """Give error and cost of a made-up network with mixed parameters."""
    capacity = point["width"] * point["layers"]
    away = (math.log10(point["rate"]) + 2.5) ** 2 + (point["kind"] != "b") * 0.5
    return 1 / math.log2(2 + capacity) + 0.1 * away, capacity / 2048 + 0.05 * point["layers"]


PROBLEMS = {
    "zdt1": Problem(zdt1, unit(6), (1.1, 7.0)),
    "zdt2": Problem(zdt2, unit(6), (1.1, 7.0)),
    "zdt3": Problem(zdt3, unit(6), (1.1, 7.0)),
    "network": Problem(
        network,
        {
            "width": {"_type": "randint", "_value": [4, 257]},
            "layers": {"_type": "randint", "_value": [1, 9]},
            "rate": {"_type": "loguniform", "_value": [1e-5, 1]},
            "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
        },
        (1.5, 1.5),
    ),
}


def hypervolume(losses: Sequence[Pair], reference: Pair) -> float:
    """Return the area that is dominated, up to the reference."""
    inside = [pair for pair in losses if pair[0] < reference[0] and pair[1] < reference[1]]
    front = sorted(inside[index] for index in pareto_front(inside))
    area, height = 0.0, reference[1]
    for first, second in front:
        area += (reference[0] - first) * max(height - second, 0.0)
        height = min(height, second)
    return area


def ours(problem: Problem, tuner: str, seed: int, trials: int) -> float:
    study = Study(problem.space, tuner=tuner, optimize_mode=MODES, seed=seed)
    found = []
    for _ in range(trials):
        trial = study.ask()
        pair = problem.objective(trial.parameters)
        study.tell(trial, {"f1": pair[0], "f2": pair[1]})
        found.append(pair)
    return hypervolume(found, problem.reference)


def theirs(problem: Problem, sampler: str, seed: int, trials: int) -> float:
    kinds: dict[str, Any] = {
        "GP": optuna.samplers.GPSampler,
        "NSGA-II": optuna.samplers.NSGAIISampler,
        "TPE": optuna.samplers.TPESampler,
    }
    study = optuna.create_study(
        sampler=kinds[sampler](seed=seed), directions=["minimize", "minimize"]
    )
    found = []
    for _ in range(trials):
        trial = study.ask()
        point = {name: suggested(trial, name, entry) for name, entry in problem.space.items()}
        pair = problem.objective(point)
        study.tell(trial, pair)
        found.append(pair)
    return hypervolume(found, problem.reference)


def suggested(trial: optuna.Trial, name: str, entry: dict[str, Any]) -> Any:
    kind, values = entry["_type"], entry["_value"]
    if kind == "choice":
        return trial.suggest_categorical(name, values)
    if kind == "randint":
        return trial.suggest_int(name, values[0], values[1] - 1)
    return trial.suggest_float(name, *values, log=kind == "loguniform")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--process", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print_header("two objectives: dominated area", packages=["optuna"])
    for name, problem in PROBLEMS.items():
        seeds = range(arguments.seeds)
        best = 0.0
        for sampler in ("TPE", "NSGA-II", *(("GP",) if arguments.process else ())):
            runs = [theirs(problem, sampler, seed, arguments.trials) for seed in seeds]
            best = max(best, print_figure(f"{name}: Optuna {sampler}", runs, ""))
        for tuner in ("Random", "NSGA2", "TPE", "GPTuner", "auto"):
            runs = [ours(problem, tuner, seed, arguments.trials) for seed in seeds]
            print_figure(f"{name}: {tuner}", runs, "", peer=best)


if __name__ == "__main__":
    main()
