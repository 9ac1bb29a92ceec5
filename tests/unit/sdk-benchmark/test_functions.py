"""Test functions at their minima."""

from collections.abc import Callable

import numpy as np
import pytest

from nni_benchmark import functions
from nni_benchmark.functions import Vector

HARTMANN_MINIMUM = np.array([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573])
MICHALEWICZ_MINIMUM = np.array([2.202906, 1.570796, 1.284992, 1.923058, 1.720470])


def spheroid(x: Vector) -> float:
    return functions.sphere(x, 0.7)


@pytest.mark.parametrize(
    ("function", "minimum", "value"),
    [
        (functions.ackley, np.zeros(4), 0.0),
        (functions.rosenbrock, np.ones(4), 0.0),
        (functions.levy, np.ones(4), 0.0),
        (functions.styblinski_tang, np.full(4, -2.903534), 0.0),
        (functions.rastrigin, np.zeros(4), 0.0),
        (functions.griewank, np.zeros(4), 0.0),
        (functions.hartmann6, HARTMANN_MINIMUM, functions.HARTMANN_LEAST),
        (functions.michalewicz, MICHALEWICZ_MINIMUM, functions.MICHALEWICZ5_LEAST),
        (spheroid, np.full(4, 0.7), 0.0),
    ],
)
def test_minimum_has_the_published_value_and_neighbours_are_worse(
    function: Callable[[Vector], float], minimum: Vector, value: float
) -> None:
    steps = 0.01 * np.eye(len(minimum))

    # The published minima have six digits; the functions are flat there to 1e-5.
    assert function(minimum) == pytest.approx(value, abs=1e-5)
    assert all(function(minimum + step) > value for step in (*steps, *-steps))


@pytest.mark.parametrize(("x", "y"), [(-np.pi, 12.275), (np.pi, 2.275), (9.42478, 2.475)])
def test_branin_has_three_minima(x: float, y: float) -> None:
    assert functions.branin(x, y) == pytest.approx(functions.BRANIN_LEAST, abs=1e-6)


def test_front_of_zdt1_is_convex_and_that_of_zdt2_concave() -> None:
    on_front = np.array([0.25, 0.0, 0.0])

    assert functions.zdt1(on_front) == (0.25, 0.5)
    assert functions.zdt2(on_front) == (0.25, 1 - 0.25**2)
