"""Synthetic problems: valid spaces, and no loss below the optimum."""

from __future__ import annotations

import math
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from nni.hpo.space.parser import parse_space
from nni_benchmark import functions
from nni_benchmark.problem import Problem, hypervolume
from nni_benchmark.synthetic import synthetic_problems

PROBLEMS = {problem.name: problem for problem in synthetic_problems()}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_no_draw_is_better_than_the_least_loss(problem: Problem) -> None:
    space, rng = parse_space(problem.space), Random(0)
    points = [space.draw(rng) for _ in range(300)]

    losses = [problem.losses(point) for point in points if problem.allows(point)]
    if problem.excess:
        limit = problem.excess
        losses = [problem.losses(point) for point in points if limit(point) <= 0]

    if problem.reference:
        assert -hypervolume(losses, problem.reference) >= problem.optimum
    else:
        assert min(losses, default=(math.inf,))[0] >= problem.optimum - 1e-6


BEST: dict[str, dict[str, Any]] = {
    "branin": {"x0": math.pi, "x1": 2.275 / 15},
    "hartmann6": dict(
        zip(
            (f"x{place}" for place in range(6)),
            (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
            strict=True,
        )
    ),
    "ackley10": {f"x{place}": 0.0 for place in range(10)},
    "rosenbrock5": {f"x{place}": 1.0 for place in range(5)},
    "levy8": {f"x{place}": 1.0 for place in range(8)},
    "styblinski6": {f"x{place}": -2.903534 for place in range(6)},
    "rastrigin4": {f"x{place}": 0.0 for place in range(4)},
    "griewank6": {f"x{place}": 0.0 for place in range(6)},
    "michalewicz5": {
        f"x{place}": value
        for place, value in enumerate((2.202906, 1.570796, 1.284992, 1.923058, 1.720470))
    },
    "sphere15": {f"x{place}": 0.7 for place in range(15)},
    "mixed10": {
        "f0": 1,
        "f1": -2,
        "f2": 3,
        "l0": 1e-1,
        "l1": 1e-3,
        "l2": 1e-4,
        "i0": 13,
        "i1": 30,
        "c0": "b",
        "c1": "y",
    },
    "nested": {
        "m": {"_name": "large", "x0": 0.2, "x1": 0.7, "x2": 0.4, "x3": 0.9},
        "s": 0.6,
    },
    "thin": {"x0": 1.5 * math.pi, "x1": math.asin(0.95)},
}


@pytest.mark.parametrize("name", BEST)
def test_known_best_point_has_the_least_loss(name: str) -> None:
    problem = PROBLEMS[name]

    # What is known of the best points has five or six digits.
    assert problem.losses(BEST[name])[0] == pytest.approx(problem.optimum, abs=2e-4)
    assert not problem.excess or problem.excess(BEST[name]) <= 1e-9


def test_least_of_the_categories_is_found_by_trying_all() -> None:
    problem = PROBLEMS["categories"]

    least = min(
        problem.losses({**{f"c{i}": c for i, c in enumerate(options)}, "x0": 0.3, "x1": height})[0]
        for options in product("abcd", repeat=4)
        for height in (0.2, 0.8)
    )

    assert least == pytest.approx(problem.optimum)


def test_least_of_the_budget_lies_on_the_constraint() -> None:
    problem = PROBLEMS["budget"]
    best = {"width": 512, "layers": 2, "rate": 10**-2.5}

    assert problem.allows(best)
    assert problem.losses(best)[0] == pytest.approx(problem.optimum)
    assert not problem.allows({**best, "layers": 3})


def test_areas_of_the_known_fronts_are_the_best_hypervolumes() -> None:
    for name, front in (("zdt1", functions.zdt1), ("zdt2", functions.zdt2)):
        points = [np.array([first, 0, 0, 0, 0, 0]) for first in np.linspace(0, 1, 2001)]
        area = hypervolume([front(point) for point in points], PROBLEMS[name].reference)

        # Steps of a 2,000th leave out less than a thousandth each way.
        assert -PROBLEMS[name].optimum - 2e-3 < area <= -PROBLEMS[name].optimum
