"""The adapting normal distribution."""

import json
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.tuners._covariance import Covariance, Rates, Solution, population_of, rates_of


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


def test_state_of_another_population_replaces_the_rates() -> None:
    first, other = (Covariance(np.full(3, 0.5), np.zeros(3), [], size) for size in (12, 6))
    generation = [first.draw(np.random.default_rng(seed)) for seed in range(12)]

    other.load_state(json.loads(json.dumps(first.state())))
    for distribution in (first, other):
        distribution.tell(generation)

    assert first.state()["generation"] == 1
    assert other.state() == first.state()


def tutorial_rates(n: int, population: int) -> Rates:
    """Return weights and rates by table 1 of the tutorial, one number after the other."""
    raw = [math.log((population + 1) / 2) - math.log(i + 1) for i in range(population)]
    good, bad = [w for w in raw if w > 0], [w for w in raw if w <= 0]
    mueff = sum(good) ** 2 / sum(w * w for w in good)
    c_sigma = (mueff + 2) / (n + mueff + 5)
    c_1 = 2 / ((n + 1.3) ** 2 + mueff)
    c_mu = min(1 - c_1, 2 * (mueff - 2 + 1 / mueff) / ((n + 2) ** 2 + mueff))
    bounds = [1 + 2 * sum(bad) ** 2 / sum(w * w for w in bad) / (mueff + 2)]
    if c_mu > 0:
        bounds += [1 + c_1 / c_mu, (1 - c_1 - c_mu) / (n * c_mu)]
    weights = [w / sum(good) for w in good] + [min(bounds) * w / -sum(bad) for w in bad]
    return Rates(
        np.array(weights),
        mueff,
        c_sigma,
        1 + 2 * max(0, math.sqrt((mueff - 1) / (n + 1)) - 1) + c_sigma,
        (4 + mueff / n) / (n + 4 + 2 * mueff / n),
        c_1,
        c_mu,
        math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2)),
    )


@pytest.mark.parametrize(("n", "population"), [(1, 2), (1, 4), (2, 6), (10, 10), (3, 200)])
def test_all_rates_are_those_of_the_tutorial(n: int, population: int) -> None:
    found, expected = rates_of(n, population), tutorial_rates(n, population)

    assert found.weights == pytest.approx(expected.weights)
    for name in ("mueff", "c_sigma", "d_sigma", "c_c", "c_1", "c_mu", "expected"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), name


@pytest.mark.parametrize(
    ("dimensions", "population"), [(0, 4), (1, 4), (2, 6), (10, 10), (100, 17)]
)
def test_default_population_grows_with_the_logarithm(dimensions: int, population: int) -> None:
    assert population_of(dimensions) == population


def updated(state: dict[str, Any], points: Floats, steps: Floats) -> dict[str, Any]:
    """Return the state after a generation, by the equations of the tutorial and of the margin."""
    n, r = len(steps), tutorial_rates(len(steps), len(points))
    mean, sigma, matrix = np.array(state["mean"]), state["sigma"], np.array(state["matrix"])
    values, axes = np.linalg.eigh(matrix)
    root = axes @ np.diag(1 / np.sqrt(values)) @ axes.T
    moves = [(point - mean) / sigma for point in points]
    most = math.sqrt(n) + 2 * n / (n + 2)
    moves = [move * min(1, most / np.linalg.norm(root @ move)) for move in moves]
    step = sum(w * move for w, move in zip(r.weights, moves, strict=True) if w > 0)
    path, other = (np.array(one) for one in state["paths"])
    path = (1 - r.c_sigma) * path + math.sqrt(r.c_sigma * (2 - r.c_sigma) * r.mueff) * root @ step
    length = float(np.linalg.norm(path))
    started = math.sqrt(1 - (1 - r.c_sigma) ** (2 * (state["generation"] + 1)))
    goes = length / started < (1.4 + 2 / (n + 1)) * r.expected
    other = (1 - r.c_c) * other + goes * math.sqrt(r.c_c * (2 - r.c_c) * r.mueff) * step
    kept = 1 + (not goes) * r.c_1 * r.c_c * (2 - r.c_c) - r.c_1 - r.c_mu * r.weights.sum()
    matrix = kept * matrix + r.c_1 * np.outer(other, other)
    for w, move in zip(r.weights, moves, strict=True):
        active = w if w >= 0 else w * n / np.linalg.norm(root @ move) ** 2
        matrix = matrix + r.c_mu * active * np.outer(move, move)
    mean = np.clip(mean + sigma * step, 0, 1)
    sigma *= math.exp(min(1, r.c_sigma / r.d_sigma * (length / r.expected - 1)))
    reach = NormalDist().inv_cdf(1 - min(0.25, 1 / (n * len(points))))
    for axis, distance in enumerate(steps):
        factor = max(1, distance / 2 / reach / (sigma * math.sqrt(matrix[axis, axis])))
        matrix[axis, :] *= factor
        matrix[:, axis] *= factor
    return {
        "mean": mean.tolist(),
        "sigma": sigma,
        "matrix": matrix.tolist(),
        "paths": [path.tolist(), other.tolist()],
        "generation": state["generation"] + 1,
    }


@pytest.mark.parametrize(
    ("steps", "population", "place"),
    [
        ([0.0, 0.0], 6, None),
        ([0.0, 0.0, 0.0], 12, None),
        ([0.0, 0.7], 6, None),
        ([0.9], 2, None),
        ([0.0, 0.0], 6, [0.99, 0.98]),  # all far away, on one side
        ([0.0, 0.0], 6, [0.55, 0.52]),
    ],
)
def test_each_generation_is_learnt_by_the_equations_of_the_tutorial(
    steps: list[float], population: int, place: list[float] | None
) -> None:
    rng, n = np.random.default_rng(5), len(steps)
    distribution = Covariance(np.full(n, 0.5), np.array(steps), [], population)
    for _ in range(4):
        if place is None:
            points = np.array([distribution.draw(rng).numbers for _ in range(population)])
        else:
            points = np.array(place) - 0.01 * rng.random((population, n))
        before = distribution.state()

        distribution.tell([Solution(point, np.empty(0, dtype=np.int64)) for point in points])

        after = distribution.state()
        for key, value in updated(before, points, np.array(steps)).items():
            assert np.array(after[key]) == pytest.approx(np.array(value), rel=1e-6, abs=1e-9), key


@pytest.mark.parametrize("counts", [[3], [1, 3], [2, 4, 1]])
def test_options_move_a_quarter_towards_good_ones_and_stay_possible(counts: list[int]) -> None:
    distribution = Covariance(np.empty(0), np.empty(0), counts, 4)
    weights = tutorial_rates(1, 4).weights[:2]
    generation = np.array([[count - 1 for count in counts], [0] * len(counts)])
    expected = [[1 / count] * count for count in counts]
    for _ in range(6):
        for chances in expected:
            wanted = np.zeros(len(chances))
            wanted[-1] += weights[0]
            wanted[0] += weights[1]
            least = (1 - 0.73 ** (1 / len(counts))) / max(len(chances) - 1, 1)
            moved = [max(0.75 * c + 0.25 * w, least) for c, w in zip(chances, wanted, strict=True)]
            chances[:] = [one / sum(moved) for one in moved]

        distribution.tell([Solution(np.empty(0), options) for options in generation[[0, 1, 1, 1]]])

        for found, chances in zip(distribution.state()["chances"], expected, strict=True):
            assert found == pytest.approx(chances)


def test_first_draws_have_a_standard_deviation_of_a_sixth() -> None:
    distribution = Covariance(np.full(5, 0.5), np.zeros(5), [], 6)
    rng = np.random.default_rng(0)

    drawn = np.array([distribution.draw(rng).numbers for _ in range(800)])

    # Cut at three deviations, a sixth becomes 0.164; that of 4000 numbers is known to 0.002.
    assert abs(drawn.std() - 0.164) < 0.008


@pytest.mark.parametrize(
    ("sigma", "scale", "converged"),
    [
        (0.9e-8, 1.0, True),
        (1.1e-8, 1.0, False),
        (1.1e-8, 0.5, True),
        (0.9e-8, 2.0, False),
        (999.0, 1.0, False),
        (1001.0, 1.0, True),
    ],
)
def test_it_has_converged_at_a_tiny_deviation_or_a_huge_step_size(
    sigma: float, scale: float, converged: bool
) -> None:
    distribution = Covariance(np.full(2, 0.5), np.zeros(2), [], 6)
    matrix = [[scale**2, 0.0], [0.0, 1e-12]]

    distribution.load_state({**distribution.state(), "sigma": sigma, "matrix": matrix})

    assert distribution.converged is converged


def test_choices_alone_never_converge() -> None:
    assert not Covariance(np.empty(0), np.empty(0), [2], 4).converged
