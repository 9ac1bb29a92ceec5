"""Minimisation inside a box."""

import math
from itertools import pairwise

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


class Slope:
    """Linear function of a given gradient that records where it is evaluated."""

    def __init__(self, *gradient: float) -> None:
        self.gradient = np.array(gradient)
        self.places: list[list[float]] = []

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        self.places.append(x.tolist())
        return float(self.gradient @ x), self.gradient


@pytest.mark.parametrize("slope", [(1.0, -1.0), (3.0, -0.5)])
def test_corner_that_all_descent_leads_to_is_left_alone(slope: tuple[float, float]) -> None:
    function = Slope(*slope)

    point, _ = minimise(function, np.array([0.0, 1.0]), np.zeros(2), np.ones(2), evaluations=9)

    assert point.tolist() == [0.0, 1.0]
    assert len(function.places) == 1


@pytest.mark.parametrize(
    ("slope", "tolerance", "moves"),
    [(0.5, 0.5, False), (0.51, 0.5, True), (1e-7, None, False), (1e-5, None, True)],
)
def test_slope_up_to_the_tolerance_is_flat(
    slope: float, tolerance: float | None, moves: bool
) -> None:
    function = Slope(slope)
    limits: dict[str, float] = {} if tolerance is None else {"tolerance": tolerance}

    minimise(function, np.full(1, 0.5), np.zeros(1), np.ones(1), evaluations=2, **limits)

    assert len(function.places) == (2 if moves else 1)


@pytest.mark.parametrize(("slope", "moved"), [((0.1, -0.05), 0.1), ((10.0, -5.0), 0.2)])
def test_first_step_is_the_slope_and_two_tenths_at_most(
    slope: tuple[float, float], moved: float
) -> None:
    function = Slope(*slope)

    minimise(function, np.full(2, 0.5), np.zeros(2), np.ones(2), evaluations=2)

    assert function.places[1] == pytest.approx([0.5 - moved, 0.5 + moved / 2])


def test_step_is_shortened_to_two_fifths_until_it_descends_enough() -> None:
    places: list[float] = []

    def flat_beyond(x: Floats) -> tuple[float, Floats]:
        """Return hardly less than at the start, but at 0.968."""
        places.append(float(x[0]))
        return (-1.0 if 0.95 < x[0] < 0.99 else 1e-6 * (x[0] - 1)), np.array([1.0])

    point, value = minimise(flat_beyond, np.ones(1), np.zeros(1), np.ones(1), evaluations=4)

    assert places == pytest.approx([1.0, 0.8, 0.92, 0.968])
    assert (point[0], value) == (places[-1], -1.0)


def test_steps_follow_the_curvature_of_those_before() -> None:
    curvature = np.array([[2.0, 0.5], [0.5, 9.0]])
    places: list[Floats] = []

    def quadratic(x: Floats) -> tuple[float, Floats]:
        places.append(x)
        return float(0.5 * x @ curvature @ x), curvature @ x

    minimise(quadratic, np.array([1.0, 0.5]), np.full(2, -9.0), np.full(2, 9.0), evaluations=4)

    for last in (1, 2):
        steps = [after - before for before, after in pairwise(places[: last + 1])]
        turns = [curvature @ step for step in steps]
        # Nocedal and Wright, equations 6.17 and 7.20: updates of a multiple of the identity.
        inverse = np.eye(2) * float(steps[-1] @ turns[-1]) / float(turns[-1] @ turns[-1])
        for step, turn in zip(steps, turns, strict=True):
            side = np.eye(2) - np.outer(step, turn) / float(step @ turn)
            inverse = side @ inverse @ side.T + np.outer(step, step) / float(step @ turn)
        assert places[last + 1] - places[last] == pytest.approx(-inverse @ curvature @ places[last])


def test_variable_on_its_bound_stays_while_the_other_one_moves() -> None:
    function = Slope(1.0, 0.1)

    minimise(function, np.array([0.0, 0.5]), np.zeros(2), np.ones(2), evaluations=2)

    assert function.places[1] == pytest.approx([0.0, 0.4])
