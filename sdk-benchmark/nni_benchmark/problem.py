"""Problems of the benchmark: space, losses and optimum; evaluation with regret."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from nni.hpo.json_value import JsonValue
from nni.hpo.pareto import pareto_front
from nni.hpo.space.domains import CONSTRAINTS_KEY
from nni.hpo.space.parser import parse_space

Configuration: TypeAlias = dict[str, Any]
"""A configuration of a problem's space."""
Losses: TypeAlias = tuple[float, ...]

Kind = Literal[
    "continuous", "mixed", "nested", "noisy", "constrained", "limited", "objectives", "table"
]
"""`constrained`: the space has `_constraints`; `limited`: an outcome has a limit; `objectives`:
several objectives; `table`: losses of a recorded table."""

METRIC: Final = "loss"
"""Name of the first objective; the others are `loss1`, `loss2`, ..."""
LIMITED_METRIC: Final = "excess"
"""Name of the limited outcome, which must be <= 0."""
_OBJECTIVES: Final = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """Minimisation problem with a known optimum: space, loss function, noise and limits."""

    name: str
    space: dict[str, JsonValue]
    """Search space in JSON."""
    losses: Callable[[Configuration], Losses]
    """Function of a configuration: one loss, or two with several objectives; without noise."""
    optimum: float
    """Least loss; with several objectives the negative of the largest hypervolume. Regret is the
    difference from it."""
    kinds: frozenset[Kind] = frozenset()
    noise: float = 0.0
    """Standard deviation of the noise on observed losses."""
    excess: Callable[[Configuration], float] | None = None
    """Limited outcome, feasible if <= 0; None without a limit."""
    reference: Losses = ()
    """Reference point of the hypervolume; empty with one objective."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the objectives."""
        return (METRIC, *(f"{METRIC}{place}" for place in range(1, len(self.reference))))

    @property
    def flat(self) -> bool:
        """True if the space has no nested parameters."""
        return "nested" not in self.kinds

    def allows(self, point: Configuration) -> bool:
        """Return whether a configuration satisfies the constraints of the space."""
        return CONSTRAINTS_KEY not in self.space or parse_space(self.space).allows(point)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Trial as a searcher sees it: noisy losses, None if not allowed, and excess of a limit."""

    losses: Losses | None
    """None for a configuration that violates a constraint of the space."""
    excess: float = 0.0
    """Violation of the limit on an outcome; 0 if feasible."""


@dataclass(slots=True)
class Evaluation:
    """Objective function of one search: counts trials, adds noise, records the regret.

    Args:
        problem: the problem.
        seed: seed of the noise.
        trials: budget of evaluations, >= 1.
    """

    problem: Problem
    seed: int
    trials: int
    regrets: list[float] = field(default_factory=list)
    """Simple regret of the incumbent after each trial; inf before the first feasible one. With
    several objectives the difference to the largest hypervolume."""
    _seen: float = math.inf
    _front: list[Losses] = field(default_factory=list)
    _rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"trials must be >= 1, got {self.trials}")
        self._rng = np.random.default_rng([self.seed, zlib.crc32(self.problem.name.encode())])

    @property
    def left(self) -> int:
        """Remaining number of trials."""
        return self.trials - len(self.regrets)

    def __call__(self, point: Configuration) -> Outcome:
        """Evaluate a configuration as one trial: record the regret, return noisy losses."""
        if not self.left:
            raise ValueError(f"the {self.trials} trials of this search are spent")
        regret = self.regrets[-1] if self.regrets else math.inf
        noise = self.problem.noise * float(self._rng.standard_normal())
        if not self.problem.allows(point):
            self.regrets.append(regret)
            return Outcome(None)
        losses = self.problem.losses(point)
        excess = max(0.0, self.problem.excess(point)) if self.problem.excess else 0.0
        self.regrets.append(regret if excess else self._regret(losses, noise, regret))
        return Outcome(tuple(loss + noise for loss in losses), excess)

    def _regret(self, losses: Losses, noise: float, regret: float) -> float:
        if self.problem.reference:
            self._front.append(losses)
            self._front = [self._front[place] for place in pareto_front(self._front)]
            covered = hypervolume(self._front, self.problem.reference)
            return max(0.0, -covered - self.problem.optimum)
        if losses[0] + noise >= self._seen:
            return regret
        self._seen = losses[0] + noise
        return max(0.0, losses[0] - self.problem.optimum)


def hypervolume(losses: Sequence[Losses], reference: Losses) -> float:
    """Return the area that pairs of losses dominate, bounded by the reference point."""
    if len(reference) != _OBJECTIVES:
        raise ValueError(f"reference must hold {_OBJECTIVES} losses, got {len(reference)}")
    inside = [pair for pair in losses if pair[0] < reference[0] and pair[1] < reference[1]]
    area, height = 0.0, reference[1]
    for first, second in sorted(inside):
        area += (reference[0] - first) * max(height - second, 0.0)
        height = min(height, second)
    return area


def uniform(lower: float, upper: float) -> Configuration:
    """Return the entry of a uniform parameter."""
    return {"_type": "uniform", "_value": [lower, upper]}


def loguniform(lower: float, upper: float) -> Configuration:
    """Return the entry of a log-uniform parameter."""
    return {"_type": "loguniform", "_value": [lower, upper]}


def randint(lower: int, upper: int) -> Configuration:
    """Return the entry of an integer parameter below `upper`."""
    return {"_type": "randint", "_value": [lower, upper]}


def choice(*options: JsonValue) -> Configuration:
    """Return the entry of a categorical parameter; dicts with `_name` are branches."""
    return {"_type": "choice", "_value": list(options)}


def floats(count: int, lower: float, upper: float) -> dict[str, JsonValue]:
    """Return a space of uniform parameters `x0`, `x1`, ..."""
    return {f"x{place}": uniform(lower, upper) for place in range(count)}


def vector(point: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return all values `x0`, `x1`, ... of a configuration as a vector."""
    count = sum(1 for name in point if name[0] == "x" and name[1:].isdigit())
    return np.array([point[f"x{place}"] for place in range(count)], dtype=float)
