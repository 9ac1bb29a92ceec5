"""What searches are compared on: a space, losses over it, and the least loss there is."""

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

Point: TypeAlias = dict[str, Any]
"""A configuration, as searches propose it."""
Losses: TypeAlias = tuple[float, ...]

Kind = Literal[
    "continuous", "mixed", "nested", "noisy", "constrained", "limited", "objectives", "table"
]
"""`constrained`: the space has `_constraints`; `limited`: there is a limit on an outcome;
`objectives`: there are several; `table`: looked up in a recorded table."""

METRIC: Final = "loss"
"""Name of the first objective; the others are `loss1`, `loss2`, ..."""
LIMITED_METRIC: Final = "excess"
"""Name of the outcome that must be <= 0."""
_OBJECTIVES: Final = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to minimise."""

    name: str
    space: dict[str, JsonValue]
    """As tuners take it."""
    losses: Callable[[Point], Losses]
    """One loss; or two, with several objectives. Without the noise."""
    least: float
    """The least loss; with several objectives minus the largest hypervolume. Regret counts from
    here."""
    kinds: frozenset[Kind] = frozenset()
    noise: float = 0.0
    """Standard deviation of what is added to the losses that searches see."""
    excess: Callable[[Point], float] | None = None
    """Outcome that must be <= 0 for a point to count; None: there is no such limit."""
    reference: Losses = ()
    """Corner up to which hypervolume counts; empty with one objective."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the objectives."""
        return (METRIC, *(f"{METRIC}{place}" for place in range(1, len(self.reference))))

    @property
    def flat(self) -> bool:
        """Whether no parameter depends on another one."""
        return "nested" not in self.kinds

    def allows(self, point: Point) -> bool:
        """Return whether a point keeps the constraints of the space."""
        return CONSTRAINTS_KEY not in self.space or parse_space(self.space).allows(point)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search learns of one point."""

    losses: Losses | None
    """None: the point breaks a constraint of the space, and was not evaluated."""
    excess: float = 0.0
    """By how much the limit on an outcome is exceeded; 0: it is kept, or there is none."""


@dataclass(slots=True)
class Evaluation:
    """Evaluates the points of one search and keeps account of its regret.

    Args:
        problem: what is minimised.
        seed: of the noise.
        trials: how many points may be evaluated, >= 1.
    """

    problem: Problem
    seed: int
    trials: int
    regrets: list[float] = field(default_factory=list)
    """After each trial: by how much the point that seemed best is worse than the best there is;
    inf until one keeps all limits. With several objectives: the hypervolume that is missing."""
    _seen: float = math.inf
    _front: list[Losses] = field(default_factory=list)
    _rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"trials must be >= 1, got {self.trials}")
        self._rng = np.random.default_rng([self.seed, zlib.crc32(self.problem.name.encode())])

    @property
    def left(self) -> int:
        """How many trials may follow."""
        return self.trials - len(self.regrets)

    def __call__(self, point: Point) -> Outcome:
        """Evaluate a point; a trial is spent on it in any case."""
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
            return max(0.0, -covered - self.problem.least)
        if losses[0] + noise >= self._seen:
            return regret
        self._seen = losses[0] + noise
        return max(0.0, losses[0] - self.problem.least)


def hypervolume(losses: Sequence[Losses], reference: Losses) -> float:
    """Return the area that pairs of losses dominate, up to the reference."""
    if len(reference) != _OBJECTIVES:
        raise ValueError(f"reference must hold {_OBJECTIVES} losses, got {len(reference)}")
    inside = [pair for pair in losses if pair[0] < reference[0] and pair[1] < reference[1]]
    area, height = 0.0, reference[1]
    for first, second in sorted(inside):
        area += (reference[0] - first) * max(height - second, 0.0)
        height = min(height, second)
    return area


def uniform(lower: float, upper: float) -> Point:
    """Return a parameter that is any number between two."""
    return {"_type": "uniform", "_value": [lower, upper]}


def loguniform(lower: float, upper: float) -> Point:
    """Return a parameter whose logarithm is spread evenly."""
    return {"_type": "loguniform", "_value": [lower, upper]}


def randint(lower: int, upper: int) -> Point:
    """Return an integer parameter below `upper`."""
    return {"_type": "randint", "_value": [lower, upper]}


def choice(*options: JsonValue) -> Point:
    """Return a parameter with options; those that are dicts with `_name` are branches."""
    return {"_type": "choice", "_value": list(options)}


def floats(count: int, lower: float, upper: float) -> dict[str, JsonValue]:
    """Return a space of numbers `x0`, `x1`, ... in one range."""
    return {f"x{place}": uniform(lower, upper) for place in range(count)}


def vector(point: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return `(count,)`, the `x0`, `x1`, ... of a point."""
    count = sum(1 for name in point if name[0] == "x" and name[1:].isdigit())
    return np.array([point[f"x{place}"] for place in range(count)], dtype=float)
