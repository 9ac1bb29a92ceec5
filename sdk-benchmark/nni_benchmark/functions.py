"""Test functions of global optimisation on vectors, with their minima where known.

Source: Surjanovic and Bingham, Virtual Library of Simulation Experiments; the pairs of losses from
Zitzler, Deb and Thiele, Comparison of Multiobjective Evolutionary Algorithms, 2000.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

import numpy as np

Vector: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
"""`(dimensions,)`."""

BRANIN_LEAST: Final = 0.397887
HARTMANN_LEAST: Final = -3.32237
MICHALEWICZ5_LEAST: Final = -4.687658

_HARTMANN_WEIGHTS: Final = np.array([1, 1.2, 3, 3.2])
_HARTMANN_SCALES: Final = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN_CENTRES: Final = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin(x: float, y: float) -> float:
    """Return Branin's function; x in [-5, 10], y in [0, 15]."""
    valley = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann6(x: Vector) -> float:
    """Return Hartmann's function of six numbers in [0, 1]."""
    inner = (_HARTMANN_SCALES * (x - _HARTMANN_CENTRES) ** 2).sum(axis=1)
    return -float((_HARTMANN_WEIGHTS * np.exp(-inner)).sum())


def ackley(x: Vector) -> float:
    """Return Ackley's function; 0 at the origin."""
    slope = -20 * np.exp(-0.2 * np.sqrt((x * x).mean()))
    return float(slope - np.exp(np.cos(2 * np.pi * x).mean()) + 20 + math.e)


def rosenbrock(x: Vector) -> float:
    """Return Rosenbrock's function; 0 at (1, 1, ...)."""
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def levy(x: Vector) -> float:
    """Compute Levy's test function; minimum 0 at (1, 1, …)."""
    w = 1 + (x - 1) / 4
    middle = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)).sum()
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + middle + last)


def styblinski_tang(x: Vector) -> float:
    """Return the function of Styblinski and Tang, shifted to a minimum of 0."""
    return float(0.5 * (x**4 - 16 * x**2 + 5 * x).sum()) + 39.166165703771 * len(x)


def rastrigin(x: Vector) -> float:
    """Return Rastrigin's function; 0 at the origin."""
    return float(10 * len(x) + (x * x - 10 * np.cos(2 * np.pi * x)).sum())


def griewank(x: Vector) -> float:
    """Return Griewank's function; 0 at the origin."""
    waves = np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1))))
    return float((x**2).sum() / 4000 - waves + 1)


def michalewicz(x: Vector) -> float:
    """Return Michalewicz's function; numbers in [0, pi]."""
    place = np.arange(1, len(x) + 1)
    return float(-(np.sin(x) * np.sin(place * x * x / np.pi) ** 20).sum())


def sphere(x: Vector, centre: float) -> float:
    """Return the squared distance from (centre, centre, ...)."""
    return float(((x - centre) ** 2).sum())


def zdt1(x: Vector) -> tuple[float, float]:
    """Return the two losses of ZDT1, with a convex front; numbers in [0, 1]."""
    g = 1 + 9 * float(x[1:].mean())
    return float(x[0]), g * (1 - math.sqrt(x[0] / g))


def zdt2(x: Vector) -> tuple[float, float]:
    """Return the two losses of ZDT2, with a concave front; numbers in [0, 1]."""
    g = 1 + 9 * float(x[1:].mean())
    return float(x[0]), g * (1 - float(x[0] / g) ** 2)
