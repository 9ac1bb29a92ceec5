"""The adapting normal distribution."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.tuners._covariance import Covariance, Solution, population_of, rates_of


def best_after(
    objective: Callable[[Floats], float], dimensions: int, generations: int, seed: int = 0
) -> float:
    rng = np.random.default_rng(seed)
    distribution = Covariance(
        np.full(dimensions, 0.5), np.zeros(dimensions), [], population_of(dimensions)
    )
    best = np.inf
    for _ in range(generations):
        drawn = [distribution.draw(rng) for _ in range(distribution.population)]
        drawn.sort(key=lambda solution: objective(solution.numbers))
        best = min(best, objective(drawn[0].numbers))
        distribution.tell(drawn)
    return best


def test_weights_are_those_of_the_tutorial() -> None:
    rates = rates_of(10, 10)

    assert rates.mueff == pytest.approx(3.17, abs=0.01)
    assert rates.weights[:5].sum() == pytest.approx(1)
    assert (np.diff(rates.weights) < 0).all()
    assert rates.weights[-1] < 0


def test_rates_of_the_matrix_are_those_of_the_tutorial() -> None:
    rates = rates_of(10, 10)

    # Table 1 with n = 10 and mueff = 3.167; the population is the default one.
    assert rates.c_1 == pytest.approx(0.015284, abs=1e-5)
    assert rates.c_mu == pytest.approx(0.02015, abs=1e-4)


def test_converges_on_a_sphere_and_on_a_turned_ellipsoid() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]

    def sphere(point: Floats) -> float:
        return float(((point - 0.3) ** 2).sum())

    def ellipsoid(point: Floats) -> float:
        return float((np.logspace(0, 4, 5) * (turn @ (point - 0.4)) ** 2).sum())

    assert best_after(sphere, 5, 120) < 1e-10
    assert best_after(ellipsoid, 5, 250) < 1e-6


def test_draws_lie_in_the_cube() -> None:
    distribution = Covariance(np.array([0.01, 0.99]), np.zeros(2), [], 6)

    drawn = [distribution.draw(np.random.default_rng(seed)).numbers for seed in range(200)]

    assert np.min(drawn) >= 0
    assert np.max(drawn) <= 1


def test_good_options_become_likely_and_none_impossible() -> None:
    rng = np.random.default_rng(0)
    distribution = Covariance(np.empty(0), np.empty(0), [4, 2], 8)
    for _ in range(60):
        drawn = [distribution.draw(rng) for _ in range(8)]
        distribution.tell(sorted(drawn, key=lambda solution: int(solution.options[0] != 2)))

    first = [int(distribution.draw(rng).options[0]) for _ in range(400)]

    assert first.count(2) > 200
    assert set(first) == {0, 1, 2, 3}


def test_a_discrete_number_can_always_reach_its_neighbour() -> None:
    rng = np.random.default_rng(0)
    distribution = Covariance(np.array([0.5]), np.array([0.25]), [], 4)
    for _ in range(100):
        drawn = [distribution.draw(rng) for _ in range(4)]
        distribution.tell(sorted(drawn, key=lambda solution: abs(solution.numbers[0] - 0.5)))

    away = [abs(distribution.draw(rng).numbers[0] - 0.5) > 0.125 for _ in range(500)]

    assert sum(away) > 20


def test_far_solutions_of_others_do_not_blow_it_up() -> None:
    distribution = Covariance(np.full(3, 0.5), np.zeros(3), [], 6)
    for _ in range(30):
        rng = np.random.default_rng(1)
        distribution.tell([distribution.draw(rng) for _ in range(6)])
    foreign = Solution(np.array([1.0, 0.0, 1.0]), np.empty(0, dtype=np.int64))

    distribution.tell([foreign] + [distribution.draw(np.random.default_rng(2)) for _ in range(5)])

    assert distribution.sigma < 1
    assert np.abs(distribution.mean - 0.5).max() < 0.5


def test_goes_on_from_its_state() -> None:
    distribution = Covariance(np.full(2, 0.5), np.array([0, 0.1]), [3], 6)
    distribution.tell([distribution.draw(np.random.default_rng(seed)) for seed in range(6)])
    other = Covariance(np.full(2, 0.5), np.array([0, 0.1]), [3], 6)

    other.load_state(json.loads(json.dumps(distribution.state())))

    left, right = (d.draw(np.random.default_rng(9)) for d in (distribution, other))
    assert left.numbers == pytest.approx(right.numbers, abs=1e-12)
    assert left.options.tolist() == right.options.tolist()
