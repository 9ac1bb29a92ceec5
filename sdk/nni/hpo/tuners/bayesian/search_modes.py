"""Which way to search next: pure decisions of the `auto` tuner, and what they are based on."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np

from nni.hpo.arrays import Bools, Floats
from nni.hpo.json_value import JsonValue

Arm: TypeAlias = Literal["design", "density", "local", "global", "explore", "option"]
"""`design`: spread over the space; `density`: TPE. The others ask the Gaussian process: near the
best point, anywhere, anywhere for a marked improvement, and the same with a chosen option."""

_FIRST_SIZE: Final = 0.8
_GREATEST_SIZE: Final = 1.6
_LEAST_SIZE: Final = 0.5**7
_SUCCESSES: Final = 3
"""Improvements in a row after which the region doubles."""
_FEWEST_FAILURES: Final = 2
"""Failures in a row after which it halves, at least; otherwise half the number of axes."""

_RECENT: Final = 8
"""Proposals of the Gaussian process that show whether it still finds anything."""
_STALE_GAIN: Final = 1e-3
"""Gain of the recent ones, relative to all that was gained, below which nothing is found."""

_EXPLORE_OPTION: Final = 0.45
_EXPLORE: Final = 0.8
"""Shares of proposals, summed up, that explore when nothing is found."""


@dataclass(slots=True)
class TrustRegion:
    """How far from the best point to look: grows with success, shrinks without."""

    axes: int
    size: float = _FIRST_SIZE
    """Geometric mean of the sides, in coordinates."""
    successes: int = 0
    failures: dict[float, int] = field(default_factory=dict)
    """Since the last improvement, by the size of the region that they were proposed in."""

    def told(self, size: float, *, improved: bool) -> None:
        """Learn whether a proposal from the region was better than all before.

        Args:
            size: of the region that it was made in. Failures in a larger one, as many trials at a
                time bring, say nothing against the present one.
            improved: whether it was.
        """
        if improved:
            self.successes += 1
            self.failures.clear()
            if self.successes >= _SUCCESSES:
                self.size, self.successes = min(_GREATEST_SIZE, 2 * self.size), 0
            return
        self.successes = 0
        self.failures[size] = self.failures.get(size, 0) + 1
        shrunk = self._shrunk(self.failures)
        if shrunk > self.size:  # it has vanished and begins again
            self.failures.clear()
        self.size = shrunk

    def expected(self, running: Iterable[float]) -> float:
        """Return the size for the next proposal if no running one is going to be an improvement.

        Of many trials at a time the later ones so look closer than the first, as they would if they
        were told one after the other.

        Args:
            running: sizes of the regions that proposals without a result were made in.
        """
        failures = Counter(self.failures)
        failures.update(running)
        return self._shrunk(failures)

    def _shrunk(self, failures: Mapping[float, int]) -> float:
        """Return the size after failures: the first of the halved ones that has not had enough."""
        size, enough = self.size, max(_FEWEST_FAILURES, self.axes // 2)
        while failures.get(size, 0) >= enough:
            size = 0.5 * size
            if size < _LEAST_SIZE:
                return _FIRST_SIZE
        return size

    def state(self) -> JsonValue:
        """Return it as JSON."""
        return [self.size, self.successes, [list(item) for item in self.failures.items()]]

    def load_state(self, state: JsonValue) -> None:
        """Take over what `state` gave."""
        self.size, self.successes, failures = state
        self.failures = dict(failures)


@dataclass(slots=True)
class Progress:
    """What the proposals of the Gaussian process gained."""

    gains: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """By how much each of the recent ones improved on the best result before it; 0 for most."""

    def stale(self, gained: float) -> bool:
        """Whether the recent proposals found next to nothing.

        Args:
            gained: by how much the best result is better than the best of the first ones.
        """
        return len(self.gains) == _RECENT and sum(self.gains) <= _STALE_GAIN * gained


def next_arm(
    rng: np.random.Generator,
    *,
    density_share: float,
    local_share: float,
    stale: bool,
    has_options: bool,
) -> Arm:
    """Return how to search for the next point, after the design.

    Args:
        rng: of the draws.
        density_share: of proposals that TPE makes.
        local_share: of the others, those near the best point.
        stale: whether the recent proposals found next to nothing.
        has_options: whether there is an unordered choice.
    """
    if rng.random() < density_share:
        return "density"
    if stale:
        draw = rng.random()
        if draw < _EXPLORE_OPTION and has_options:
            return "option"
        if draw < _EXPLORE:
            return "explore"
    return "local" if rng.random() < local_share else "global"


def option_weights(losses: Floats, has_option: list[Bools]) -> Floats:
    """Return the chance `(k,)` of each option to be explored: good ones, and those seldom tried.

    Args:
        losses: `(n,)` of all results.
        has_option: per option `(n,)`, true where a result has it.
    """
    distinct = np.unique(losses)
    weights = np.empty(len(has_option))
    for index, mask in enumerate(has_option):
        tried = losses[mask]
        rank = np.searchsorted(distinct, tried.min()) / len(distinct) if len(tried) else 0.0
        weights[index] = np.exp(-4.0 * rank) / np.sqrt(1.0 + len(tried))
    chances: Floats = weights / weights.sum()
    return chances
