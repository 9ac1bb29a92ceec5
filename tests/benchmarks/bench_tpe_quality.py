"""How good is the best of 100 sequential trials of TPE, beside Optuna, hyperopt and random search?

Median of 20 seeds on four analytic problems, one mixed and one nested; lower is better. Target:
better than Optuna's default TPE on each of the four. `--seeds N --trials N` change the size,
`--ours` leaves the peers out.
"""

import argparse
import logging
import math
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import hyperopt
import numpy as np
import optuna

from nni.hpo import Study
from tests.benchmarks.measure import print_figure, print_header

Objective = Callable[[dict[str, Any]], float]


def floats(count: int, low: float, high: float) -> dict[str, Any]:
    return {f"x{i}": {"_type": "uniform", "_value": [low, high]} for i in range(count)}


def vector(point: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([point[f"x{i}"] for i in range(len(point))])


def branin(point: dict[str, Any]) -> float:
    x, y = point["x0"], 15 * point["x1"]
    valley = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann6(point: dict[str, Any]) -> float:
    inner = (_A * (vector(point) - _P) ** 2).sum(axis=1)
    return -float((np.array([1, 1.2, 3, 3.2]) * np.exp(-inner)).sum())


def ackley10(point: dict[str, Any]) -> float:
    x = vector(point)
    slope = -20 * np.exp(-0.2 * np.sqrt((x * x).mean()))
    return float(slope - np.exp(np.cos(2 * np.pi * x).mean()) + 20 + math.e)


def rosenbrock5(point: dict[str, Any]) -> float:
    x = vector(point)
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def mixed(point: dict[str, Any]) -> float:
    floats_part = sum((point[f"f{i}"] - (1, -2, 3)[i]) ** 2 / 10 for i in range(3))
    logs_part = sum((math.log10(point[f"l{i}"]) + (1, 3, 4)[i]) ** 2 / 3 for i in range(3))
    integers = ((point["i0"] - 13) / 6) ** 2 + ((point["i1"] - 30) / 30) ** 2
    choices = {"a": 2, "b": 0, "c": 1, "d": 3}[point["c0"]]
    interaction = 1.5 if (point["c1"] == "x") == (point["f0"] > 0) else 0
    return float(floats_part + logs_part + integers + choices + interaction)


def nested(point: dict[str, Any]) -> float:
    branch, base = point["m"], 3 * (point["s"] - 0.6) ** 2
    if branch["_name"] == "flat":
        return float(1 + base)
    targets = {"small": (0.5, 2, (0.2, 0.7)), "large": (0.1, 4, (0.2, 0.7, 0.4, 0.9))}
    floor, steepness, centre = targets[branch["_name"]]
    hollow = sum((branch[f"x{i}"] - c) ** 2 for i, c in enumerate(centre))
    return float(floor + steepness * hollow + base)


MIXED: dict[str, Any] = {
    **{f"f{i}": {"_type": "uniform", "_value": [-5, 5]} for i in range(3)},
    **{f"l{i}": {"_type": "loguniform", "_value": [1e-5, 1]} for i in range(3)},
    "i0": {"_type": "randint", "_value": [1, 20]},
    "i1": {"_type": "randint", "_value": [0, 100]},
    "c0": {"_type": "choice", "_value": ["a", "b", "c", "d"]},
    "c1": {"_type": "choice", "_value": ["x", "y"]},
}
NESTED: dict[str, Any] = {
    "m": {
        "_type": "choice",
        "_value": [
            {"_name": "flat"},
            {"_name": "small", **floats(2, 0, 1)},
            {"_name": "large", **floats(4, 0, 1)},
        ],
    },
    "s": {"_type": "uniform", "_value": [0, 1]},
}
BRANIN = {
    "x0": {"_type": "uniform", "_value": [-5, 10]},
    "x1": {"_type": "uniform", "_value": [0, 1]},
}


@dataclass(frozen=True, slots=True)
class Problem:
    objective: Objective
    space: dict[str, Any]
    least: float


PROBLEMS = {
    "branin": Problem(branin, BRANIN, 0.397887),
    "hartmann6": Problem(hartmann6, floats(6, 0, 1), -3.32237),
    "ackley10": Problem(ackley10, floats(10, -5, 10), 0.0),
    "rosenbrock5": Problem(rosenbrock5, floats(5, -5, 10), 0.0),
    "mixed10": Problem(mixed, MIXED, 0.0),
    "nested": Problem(nested, NESTED, 0.1),
}


def ours(problem: Problem, seed: int, trials: int, tuner: str = "TPE") -> float:
    study = Study(problem.space, tuner=tuner, seed=seed)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, problem.objective(trial.parameters))
    return study.best_value


def random_search(problem: Problem, seed: int, trials: int) -> float:
    return ours(problem, seed, trials, "Random")


def optuna_tpe(problem: Problem, seed: int, trials: int) -> float:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(lambda trial: problem.objective(suggested(trial, problem.space, "")), trials)
    return float(study.best_value)


def suggested(trial: optuna.Trial, space: dict[str, Any], prefix: str) -> dict[str, Any]:
    point: dict[str, Any] = {}
    for key, entry in space.items():
        name, kind, values = prefix + key, entry["_type"], entry["_value"]
        if kind == "uniform":
            point[key] = trial.suggest_float(name, *values)
        elif kind == "loguniform":
            point[key] = trial.suggest_float(name, *values, log=True)
        elif kind == "randint":
            point[key] = trial.suggest_int(name, values[0], values[1] - 1)
        else:
            point[key] = suggested_option(trial, values, name)
    return point


def suggested_option(trial: optuna.Trial, options: list[Any], name: str) -> Any:
    branches = {o["_name"]: o for o in options if isinstance(o, dict)}
    chosen = trial.suggest_categorical(name, list(branches) or options)
    if not branches:
        return chosen
    inner = {key: value for key, value in branches[chosen].items() if key != "_name"}
    return {"_name": chosen, **suggested(trial, inner, f"{name}/{chosen}/")}


def hyperopt_tpe(problem: Problem, seed: int, trials: int) -> float:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    kept = hyperopt.Trials()
    hyperopt.fmin(
        problem.objective,
        hyperopt_space(problem.space, ""),
        algo=hyperopt.tpe.suggest,
        max_evals=trials,
        trials=kept,
        rstate=np.random.default_rng(seed),
        verbose=False,
    )
    return float(min(kept.losses()))


def hyperopt_space(space: dict[str, Any], prefix: str) -> dict[str, Any]:
    point: dict[str, Any] = {}
    for key, entry in space.items():
        name, kind, values = prefix + key, entry["_type"], entry["_value"]
        if kind == "uniform":
            point[key] = hyperopt.hp.uniform(name, *values)
        elif kind == "loguniform":
            point[key] = hyperopt.hp.loguniform(name, *np.log(values))
        elif kind == "randint":
            point[key] = hyperopt.hp.randint(name, *values)
        else:
            options = [
                {"_name": o["_name"]}
                | hyperopt_space(
                    {k: v for k, v in o.items() if k != "_name"}, f"{name}/{o['_name']}/"
                )
                if isinstance(o, dict)
                else o
                for o in values
            ]
            point[key] = hyperopt.hp.choice(name, options)
    return point


SEARCHES: dict[str, Callable[[Problem, int, int], float]] = {
    "ours": ours,
    "optuna": optuna_tpe,
    "hyperopt": hyperopt_tpe,
    "random": random_search,
}


def best(search: str, problem: str, seed: int, trials: int) -> float:
    return SEARCHES[search](PROBLEMS[problem], seed, trials)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--ours", action="store_true")
    options = parser.parse_args()
    print_header(str(__doc__), seed=0, packages=["numpy", "optuna", "hyperopt"])
    searches = ["ours"] if options.ours else list(SEARCHES)
    os.environ["OMP_NUM_THREADS"] = "1"  # for the processes of the pool
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, problem in PROBLEMS.items():
            found: dict[str, float] = {}
            for search in searches:
                jobs = [
                    pool.submit(best, search, name, seed, options.trials)
                    for seed in range(options.seeds)
                ]
                found[search] = print_figure(f"{name}, {search}", [j.result() for j in jobs], "")
            for peer in searches[1:]:
                ours_left, peers_left = (found[s] - problem.least for s in ("ours", peer))
                print(f"     regret, ours / {peer}: {ours_left / peers_left:.3f}")
    print(f"   medians of {options.seeds} seeds (least .. greatest), {options.trials} trials each")


if __name__ == "__main__":
    main()
