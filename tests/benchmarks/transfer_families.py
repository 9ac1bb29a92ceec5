"""Families of related tasks, on which a warm start by ranks is measured.

The tasks of a family differ in the place of their optimum, in their scales and in the influence of
parameters, as trainings on different data do. `CHOSEN_BY` served to choose the settings of
`nni.hpo.search.transfer`; the others only to judge them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

import numpy as np

TASKS: Final = 10

Relation = Literal["related", "opposite", "unrelated"]

Objective = Callable[[Mapping[str, Any]], float]


@dataclass(frozen=True, slots=True)
class Task:
    """Function to minimise, with its least value."""

    objective: Objective
    optimum: float


@dataclass(frozen=True, slots=True)
class Family:
    """Space and tasks."""

    space: dict[str, Any]
    tasks: tuple[Task, ...]
    relation: Relation = "related"
    """Of the earlier tasks to the one that is searched: with `opposite` their losses are negated,
    with `unrelated` they are shuffled."""


def _uniform(*names: str) -> dict[str, Any]:
    return {name: {"_type": "uniform", "_value": [0, 1]} for name in names}


def branin() -> Family:
    """Return shifted and rescaled Branin functions of two parameters."""
    rng = np.random.default_rng(11)

    def task() -> Task:
        shift, scale = rng.uniform(-1.5, 1.5, 2), 10 ** rng.uniform(-2, 2)

        def objective(p: Mapping[str, Any]) -> float:
            x, y = 15 * p["x"] - 5 + shift[0], 15 * p["y"] + shift[1]
            arc = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
            value = arc * arc + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
            return float(scale * value)

        return Task(objective, scale * 0.397887)

    return Family(_uniform("x", "y"), tuple(task() for _ in range(TASKS)))


def training() -> Family:
    """Return surfaces as of the training of a network: rates, sizes and an optimizer."""
    rng = np.random.default_rng(12)
    space = {
        "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
        "decay": {"_type": "loguniform", "_value": [1e-6, 1e-1]},
        "momentum": {"_type": "uniform", "_value": [0.5, 1]},
        "width": {"_type": "randint", "_value": [8, 257]},
        "optimizer": {"_type": "choice", "_value": ["sgd", "adam", "rmsprop"]},
    }

    def task() -> Task:
        lr, decay = rng.normal(-2.5, 0.4), rng.normal(-4, 0.5)
        momentum, width = rng.normal(0.85, 0.05), rng.normal(120, 25)
        steep = rng.uniform(0.5, 1.5, 4)
        costs = dict(zip(("sgd", "adam", "rmsprop"), rng.normal([0.25, 0, 0.15], 0.1), strict=True))
        least, floor, scale = min(costs.values()), rng.uniform(0.05, 0.6), 10 ** rng.uniform(-1, 1)

        def objective(p: Mapping[str, Any]) -> float:
            away = math.log10(p["lr"]) - lr - (0.5 if p["optimizer"] == "sgd" else 0)
            bowl = steep[0] * (away**2 + (0.8 * away**3 if away > 0 else 0))
            bowl += steep[1] * 0.2 * (math.log10(p["decay"]) - decay) ** 2
            bowl += steep[2] * 8 * (p["momentum"] - momentum) ** 2
            bowl += steep[3] * 2e-5 * (p["width"] - round(width)) ** 2
            bowl += costs[p["optimizer"]] - least
            return float(scale * (floor + 1 - math.exp(-bowl)))

        return Task(objective, scale * floor)

    return Family(space, tuple(task() for _ in range(TASKS)))


def hartmann() -> Family:
    """Return shifted and rescaled Hartmann functions of six parameters."""
    rng = np.random.default_rng(13)
    heights = np.array([1.0, 1.2, 3.0, 3.2])
    widths = np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    )
    centres = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    names = [f"x{number}" for number in range(6)]

    def task() -> Task:
        shift, scale = rng.uniform(-0.08, 0.08, 6), 10 ** rng.uniform(-1, 2)
        own = heights + rng.uniform(-0.2, 0.2, 4)

        def objective(p: Mapping[str, Any]) -> float:
            x = np.array([p[name] for name in names]) + shift
            return float(-scale * (own @ np.exp(-(widths * (x - centres) ** 2).sum(axis=1))))

        start = {name: float(v) for name, v in zip(names, _HARTMANN_BEST - shift, strict=True)}
        return Task(objective, _descent(objective, start))

    return Family(_uniform(*names), tuple(task() for _ in range(TASKS)))


_HARTMANN_BEST: Final = np.array([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573])


def valleys() -> Family:
    """Return rotated valleys of four parameters with ripples."""
    rng = np.random.default_rng(14)
    names = ("a", "b", "c", "d")

    def task() -> Task:
        centre = 0.5 + np.array([0.2, -0.15, 0.1, -0.25]) + rng.normal(0, 0.06, 4)
        turned, _ = np.linalg.qr(np.eye(4) + rng.normal(0, 0.25, (4, 4)))
        steep, scale = np.array([20, 6, 2, 1]) * rng.uniform(0.6, 1.6, 4), 10 ** rng.uniform(-3, 3)

        def objective(p: Mapping[str, Any]) -> float:
            z = turned @ (np.array([p[name] for name in names]) - centre)
            ripples = 0.05 * (1 - np.cos(6 * math.pi * z)).sum()
            return float(scale * (steep @ (z * z) + ripples))

        return Task(objective, 0.0)

    return Family(_uniform(*names), tuple(task() for _ in range(TASKS)))


def digits() -> Family:
    """Return real trainings: kernel machines that tell apart five of ten digits, on few images."""
    from sklearn.datasets import load_digits
    from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

    rng = np.random.default_rng(15)
    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    kernels = {"rbf": rbf_kernel, "laplacian": laplacian_kernel}
    space = {
        "kernel": {"_type": "choice", "_value": list(kernels)},
        "gamma": {"_type": "loguniform", "_value": [1e-4, 10]},
        "alpha": {"_type": "loguniform", "_value": [1e-8, 10]},
        "contrast": {"_type": "uniform", "_value": [0.2, 3]},
    }

    def task() -> Task:
        kinds = rng.choice(10, 5, replace=False)
        chosen = rng.permutation(np.flatnonzero(np.isin(labels, kinds)))[:240]
        inputs, targets = images[chosen], (labels[chosen][:, None] == kinds) * 1.0
        inputs = np.clip(inputs + rng.uniform(0, 0.3) * rng.standard_normal(inputs.shape), 0, 1)
        count = int(rng.integers(60, 140))

        def objective(p: Mapping[str, Any]) -> float:
            seen = inputs ** p["contrast"]
            matrix = kernels[p["kernel"]](seen, seen[:count], gamma=p["gamma"])
            regular = matrix[:count] + p["alpha"] * np.eye(count)
            solved = np.linalg.solve(regular, targets[:count] - 0.2)
            wrong = 0.2 + matrix[count:] @ solved - targets[count:]
            return float((wrong * wrong).mean())

        starts = [
            {"kernel": kernel, "gamma": gamma, "alpha": alpha, "contrast": 1.0}
            for kernel in kernels
            for gamma in np.geomspace(1e-3, 1, 6)
            for alpha in np.geomspace(1e-4, 1, 5)
        ]
        best = sorted(starts, key=objective)[:3]
        return Task(objective, min(_descent(objective, start, space) for start in best))

    return Family(space, tuple(task() for _ in range(TASKS)))


def opposite() -> Family:
    """Return valleys whose earlier tasks are the opposite: their best is where its worst is."""
    return replace(valleys(), relation="opposite")


def unrelated() -> Family:
    """Return Hartmann functions whose earlier tasks say nothing."""
    return replace(hartmann(), relation="unrelated")


def _descent(
    objective: Objective, start: Mapping[str, Any], space: Mapping[str, Any] | None = None
) -> float:
    """Return the least value that a random local search finds, within the ranges of a space."""
    rng = np.random.default_rng(0)
    ranges = {
        name: (entry["_type"], *entry["_value"])
        for name, entry in (space or _uniform(*start)).items()
        if entry["_type"] != "choice"
    }
    best, point, step = objective(start), dict(start), 0.1
    for _ in range(600):
        moved = dict(point)
        for name, (kind, low, high) in ranges.items():
            if kind == "loguniform":
                span = math.log(high / low)
                value = math.exp(math.log(moved[name]) + step * span * rng.standard_normal())
            else:
                value = moved[name] + step * (high - low) * rng.standard_normal()
            moved[name] = float(min(max(value, low), high))
        found = objective(moved)
        if found < best:
            best, point, step = found, moved, min(step * 1.5, 0.2)
        else:
            step = max(step * 0.95, 1e-5)
    return best


CHOSEN_BY: Final = ("branin", "training", "opposite", "unrelated", "hartmann")
"""Families by which the settings were chosen."""

_FAMILIES: Final = {
    "branin": branin,
    "training": training,
    "opposite": opposite,
    "unrelated": unrelated,
    "hartmann": hartmann,
    "valleys": valleys,
    "digits": digits,
}

NAMES: Final = tuple(_FAMILIES)


@cache
def family(name: str) -> Family:
    """Return a family by its name in `NAMES`."""
    return _FAMILIES[name]()
