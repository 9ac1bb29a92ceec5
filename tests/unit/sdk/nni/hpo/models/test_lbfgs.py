"""Minimisation inside a box."""

import math

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.lbfgs import minimise


def rosenbrock(x: Floats) -> tuple[float, Floats]:
    value = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    slope = [-400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0]), 200 * (x[1] - x[0] ** 2)]
    return float(value), np.array(slope)


def bowl(x: Floats) -> tuple[float, Floats]:
    return float(((x - 2) ** 2).sum()), 2 * (x - 2)


def test_finds_the_end_of_a_bent_valley() -> None:
    low, high = np.full(2, -2.0), np.full(2, 2.0)

    point, value = minimise(rosenbrock, np.array([-1.2, 1.0]), low, high, evaluations=150)

    assert point == pytest.approx([1, 1], abs=1e-3)
    assert value < 1e-6


def test_stops_on_the_bounds() -> None:
    low, high = np.zeros(3), np.array([1.0, 5.0, 1.5])

    point, _ = minimise(bowl, np.array([0.5, 0.5, 9.0]), low, high, evaluations=50)

    assert point == pytest.approx([1, 2, 1.5], abs=1e-6)


def test_calls_no_more_often_than_allowed() -> None:
    calls = 0

    def counted(x: Floats) -> tuple[float, Floats]:
        nonlocal calls
        calls += 1
        return rosenbrock(x)

    minimise(counted, np.array([-1.2, 1.0]), np.full(2, -2.0), np.full(2, 2.0), evaluations=7)

    assert calls == 7


def test_backs_off_from_points_without_a_value() -> None:
    def cliff(x: Floats) -> tuple[float, Floats]:
        return (math.inf, np.zeros(1)) if x[0] > 1.4 else bowl(x)

    point, value = minimise(cliff, np.zeros(1), np.zeros(1), np.full(1, 9.0), evaluations=60)

    assert 1.0 < point[0] <= 1.4
    assert value < 1.0


def test_value_never_gets_worse_than_at_the_start() -> None:
    start = np.array([1.0, 1.0])

    _, value = minimise(rosenbrock, start, np.full(2, -2.0), np.full(2, 2.0), evaluations=5)

    assert value == 0.0
