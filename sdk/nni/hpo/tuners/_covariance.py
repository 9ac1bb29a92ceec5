"""CMA-ES on the unit cube: a normal distribution with margins, and categories beside it.

Pure arithmetic: d numbers in the unit cube, c unordered choices, l solutions a generation.

Source: Hansen, The CMA Evolution Strategy: A Tutorial, arXiv 1604.00772 (with negative weights);
Hansen, Injecting External Solutions Into CMA-ES, 2011 (solutions that it did not draw itself);
Hamano et al., CMA-ES with Margin, GECCO 2022 (discrete numbers), and CatCMA, GECCO 2024 (choices).

Departures: the margin of a discrete number is kept by a least deviation instead of a corrected
mean; choices learn at a fixed rate.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.json_value import JsonValue

_FIRST_SIGMA: Final = 1 / 6
_LEAST_SIGMA: Final = 1e-9
_GREATEST_SIGMA: Final = 1e3
_REDRAWS: Final = 20
"""Limit of the draws for one in the cube; the last one is clipped to it."""
_OPTION_RATE: Final = 0.25
"""Learning rate of the probabilities of options."""
_MOST_AWAY: Final = 2.0
"""Limit of the Mahalanobis length of injected solutions, above the expected one."""
_CONVERGED: Final = 1e-8
"""Largest standard deviation, in coordinates, of a converged distribution."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Draw of numbers and options from the CMA-ES distribution, before rounding."""

    numbers: Floats
    """`(d,)`"""
    options: Ints
    """`(c,)`"""


@dataclass(frozen=True, slots=True)
class Rates:
    """Weights and learning rates of CMA-ES, by dimension and population; as in the tutorial."""

    weights: Floats
    """`(l,)`, descending; the worse half is negative."""
    mueff: float
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    expected: float
    """Expected length of a draw of the standard normal distribution."""


def population_of(dimensions: int) -> int:
    """Return the default population of a generation, `4 + int(3 ln(dimensions))`."""
    return 4 + int(3 * math.log(max(dimensions, 1)))


def rates_of(dimensions: int, population: int) -> Rates:
    """Return CMA-ES's weights and rates for dimension and population, by the tutorial's table 1."""
    n = float(max(dimensions, 1))
    raw = math.log((population + 1) / 2) - np.log(np.arange(1, population + 1))
    good, bad = raw[raw > 0], raw[raw <= 0]
    mueff = float(good.sum() ** 2 / (good**2).sum())
    mueff_bad = float(bad.sum() ** 2 / (bad**2).sum()) if len(bad) and bad.any() else 0.0
    c_sigma = (mueff + 2) / (n + mueff + 5)
    d_sigma = 1 + 2 * max(0.0, math.sqrt((mueff - 1) / (n + 1)) - 1) + c_sigma
    c_c = (4 + mueff / n) / (n + 4 + 2 * mueff / n)
    c_1 = 2 / ((n + 1.3) ** 2 + mueff)
    c_mu = min(1 - c_1, 2 * (mueff - 2 + 1 / mueff) / ((n + 2) ** 2 + mueff))
    least = min(
        1 + c_1 / c_mu if c_mu > 0 else math.inf,
        1 + 2 * mueff_bad / (mueff + 2),
        (1 - c_1 - c_mu) / (n * c_mu) if c_mu > 0 else math.inf,
    )
    total = float(-bad.sum())
    scaled_bad = bad * (least / total) if total > 0 else bad
    expected = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    weights = np.concatenate([good / good.sum(), scaled_bad])
    return Rates(weights, mueff, c_sigma, d_sigma, c_c, c_1, c_mu, expected)


class Covariance:
    """CMA-ES distribution of one run: draws solutions, adapts to each ranked generation.

    Args:
        mean: `(d,)`, where to begin.
        steps: `(d,)`, distance of neighbouring values in each coordinate; 0 for a continuum.
        counts: options per choice, each >= 1.
        population: solutions a generation, >= 2.
    """

    def __init__(self, mean: Floats, steps: Floats, counts: list[int], population: int) -> None:
        dimensions = len(mean)
        self.mean = mean
        self.sigma = _FIRST_SIGMA
        self.population = population
        self._steps = steps
        self._rates = rates_of(dimensions, population)
        self._matrix = np.eye(dimensions)
        self._path_sigma = np.zeros(dimensions)
        self._path_c = np.zeros(dimensions)
        self._generation = 0
        self._chances = [np.full(count, 1.0 / count) for count in counts]
        self._decompose()

    @property
    def converged(self) -> bool:
        """True if all draws are nearly equal, or the step size has diverged."""
        spread = self.sigma * math.sqrt(max(float(self._values.max(initial=0.0)), 0.0))
        return len(self.mean) > 0 and (spread < _CONVERGED or self.sigma > _GREATEST_SIGMA)

    def draw(self, rng: np.random.Generator) -> Solution:
        """Draw one solution; clip it to the cube if all redraws lie outside."""
        numbers = self.mean
        for _ in range(_REDRAWS):
            away = self._axes @ (np.sqrt(self._values) * rng.standard_normal(len(self.mean)))
            numbers = self.mean + self.sigma * away
            if ((numbers >= 0) & (numbers <= 1)).all():
                break
        options = [int(rng.choice(len(chances), p=chances)) for chances in self._chances]
        return Solution(np.clip(numbers, 0.0, 1.0), np.array(options, dtype=np.int64))

    def tell(self, solutions: list[Solution]) -> None:
        """Update mean, covariance, step size and option chances with a ranked generation."""
        if len(self.mean):
            self._learn_numbers(np.array([solution.numbers for solution in solutions]))
        self._learn_options(np.array([solution.options for solution in solutions]))
        self._generation += 1
        self._decompose()

    def state(self) -> JsonValue:
        """Return mean, step size, matrix, evolution paths and generation as JSON."""
        return {
            "mean": self.mean.tolist(),
            "sigma": self.sigma,
            "population": self.population,
            "matrix": self._matrix.tolist(),
            "paths": [self._path_sigma.tolist(), self._path_c.tolist()],
            "generation": self._generation,
            "chances": [chances.tolist() for chances in self._chances],
        }

    def load_state(self, state: JsonValue) -> None:
        """Restore mean, step size, matrix and evolution paths, and decompose the matrix again."""
        dimensions = len(self.mean)
        self.mean = np.array(state["mean"], dtype=np.float64)
        self.sigma = float(state["sigma"])
        self.population = int(state["population"])
        self._rates = rates_of(dimensions, self.population)
        self._matrix = np.array(state["matrix"], dtype=np.float64).reshape(dimensions, dimensions)
        self._path_sigma, self._path_c = (np.array(p, dtype=np.float64) for p in state["paths"])
        self._generation = int(state["generation"])
        self._chances = [np.array(chances) for chances in state["chances"]]
        self._decompose()

    def _decompose(self) -> None:
        self._matrix = 0.5 * (self._matrix + self._matrix.T)
        values, self._axes = np.linalg.eigh(self._matrix)
        self._values = np.maximum(values, 1e-20)

    def _learn_numbers(self, points: Floats) -> None:
        rates, n = self._rates, len(self.mean)
        steps = self._cut((points - self.mean) / self.sigma)
        good = rates.weights > 0
        step = rates.weights[good] @ steps[good]
        self.mean = np.clip(self.mean + self.sigma * step, 0.0, 1.0)
        whitened = self._axes @ ((self._axes.T @ step) / np.sqrt(self._values))
        self._path_sigma = (1 - rates.c_sigma) * self._path_sigma + math.sqrt(
            rates.c_sigma * (2 - rates.c_sigma) * rates.mueff
        ) * whitened
        length = float(np.linalg.norm(self._path_sigma))
        started = 1 - (1 - rates.c_sigma) ** (2 * (self._generation + 1))
        moves = length / math.sqrt(started) < (1.4 + 2 / (n + 1)) * rates.expected
        self._path_c = (1 - rates.c_c) * self._path_c + (
            math.sqrt(rates.c_c * (2 - rates.c_c) * rates.mueff) * step if moves else 0.0
        )
        self._learn_matrix(steps, moves=moves)
        growth = (rates.c_sigma / rates.d_sigma) * (length / rates.expected - 1)
        self.sigma = max(self.sigma * math.exp(min(growth, 1.0)), _LEAST_SIGMA)
        self._keep_margin()

    def _learn_matrix(self, steps: Floats, *, moves: bool) -> None:
        rates, n = self._rates, len(self.mean)
        whitened = (steps @ self._axes) / np.sqrt(self._values)
        lengths = np.maximum((whitened**2).sum(axis=1), 1e-12)
        weights = np.where(rates.weights >= 0, rates.weights, rates.weights * n / lengths)
        lost = 0.0 if moves else rates.c_1 * rates.c_c * (2 - rates.c_c)
        kept = 1 + lost - rates.c_1 - rates.c_mu * float(rates.weights.sum())
        self._matrix = (
            kept * self._matrix
            + rates.c_1 * np.outer(self._path_c, self._path_c)
            + rates.c_mu * (steps.T * weights) @ steps
        )

    def _cut(self, steps: Floats) -> Floats:
        """Return steps `(l, d)`, shortened where they are improbably long in this distribution."""
        whitened = (steps @ self._axes) / np.sqrt(self._values)
        n = len(self.mean)
        most = math.sqrt(n) + _MOST_AWAY * n / (n + 2)
        lengths = np.maximum(np.linalg.norm(whitened, axis=1), 1e-12)
        shortened: Floats = steps * np.minimum(1.0, most / lengths)[:, None]
        return shortened

    def _keep_margin(self) -> None:
        """Widen the margins of discrete numbers, so that a neighbouring value stays in reach."""
        share = min(0.25, 1.0 / (len(self.mean) * self.population))
        reach = NormalDist().inv_cdf(1 - share)
        deviations = self.sigma * np.sqrt(np.maximum(np.diag(self._matrix), 1e-20))
        factors = np.maximum(1.0, 0.5 * self._steps / reach / deviations)
        self._matrix = self._matrix * np.outer(factors, factors)

    def _learn_options(self, options: Ints) -> None:
        good = self._rates.weights > 0
        weights = self._rates.weights[good]
        choices = max(len(self._chances), 1)
        for column, chances in enumerate(self._chances):
            wanted = np.bincount(options[good, column], weights, minlength=len(chances))
            moved = chances + _OPTION_RATE * (wanted - chances)
            least = (1 - 0.73 ** (1 / choices)) / max(len(chances) - 1, 1)
            floored = np.maximum(moved, min(least, 1.0 / len(chances)))
            self._chances[column] = floored / floored.sum()
