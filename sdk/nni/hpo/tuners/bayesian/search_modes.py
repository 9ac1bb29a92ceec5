"""Modes of a Bayesian search: their choice, and the trust region and gains it is based on."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np

from nni.hpo.arrays import Bools, Floats
from nni.hpo.json_value import JsonValue

SearchMode: TypeAlias = Literal[
    "design", "density", "repeat", "local", "global", "explore", "option"
]
"""`design`: the initial design; `density`: TPE; `repeat`: a known configuration, to be measured
again. The others maximise the acquisition function of the
Gaussian process: in the trust region, anywhere, anywhere for a marked improvement, and the same
among configurations with one option."""

_FIRST_SIZE: Final = 0.8
_GREATEST_SIZE: Final = 1.6
_LEAST_SIZE: Final = 0.5**7
_SUCCESSES: Final = 3
"""Improvements in a row after which the region doubles."""
_FEWEST_FAILURES: Final = 2
"""Failures in a row after which it halves, at least; otherwise half the number of axes."""

_RECENT: Final = 8
"""Latest proposals of the Gaussian process whose gains are compared."""
_STALE_GAIN: Final = 1e-3
"""Gain of these, relative to all that was gained, up to which the search is stale."""

_EXPLORE_OPTION: Final = 0.45
_EXPLORE: Final = 0.8
"""Cumulative shares of proposals that explore when the search is stale."""


@dataclass(slots=True)
class TrustRegion:
    """Region around the best configuration; it grows with success and shrinks with failure."""

    axes: int
    size: float = _FIRST_SIZE
    """Geometric mean of the sides, in coordinates."""
    successes: int = 0
    failures: dict[float, int] = field(default_factory=dict)
    """Since the last improvement, by the size of the region of the proposal."""

    def record(self, size: float, *, improved: bool) -> None:
        """Count a proposal's success or failure; double or halve the size after enough of them.

        Args:
            size: of the region at the time of the proposal. Failures in a larger region, as
                concurrent trials cause, do not shrink the present one.
            improved: whether the result is better than all before.
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
        if shrunk > self.size:  # below the least size the region starts again
            self.failures.clear()
        self.size = shrunk

    def size_with_pending(self, running: Iterable[float]) -> float:
        """Return the size for the next proposal, as if every running one failed.

        Of concurrent trials the later ones are proposed closer to the best configuration, as if
        they ran one after the other.

        Args:
            running: sizes of the region at the time of the running proposals.
        """
        failures = Counter(self.failures)
        failures.update(running)
        return self._shrunk(failures)

    def _shrunk(self, failures: Mapping[float, int]) -> float:
        """Return the size halved while it has too many failures; the first size below a limit."""
        size, enough = self.size, max(_FEWEST_FAILURES, self.axes // 2)
        while failures.get(size, 0) >= enough:
            size = 0.5 * size
            if size < _LEAST_SIZE:
                return _FIRST_SIZE
        return size

    def state(self) -> JsonValue:
        """Return size, successes, and failures by size as JSON."""
        return [self.size, self.successes, [list(item) for item in self.failures.items()]]

    def load_state(self, state: JsonValue) -> None:
        """Restore size, successes, and failures by size from a state."""
        self.size, self.successes, failures = state
        self.failures = dict(failures)


@dataclass(slots=True)
class RecentGains:
    """Improvements of the incumbent by the last proposals, to detect stagnation."""

    gains: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """By how much each improved on the best result before it; 0 for most."""

    def stale(self, gained: float) -> bool:
        """Return whether the last 8 proposals gained at most 0.1 % of `gained`; False if fewer.

        Args:
            gained: by how much the best result is better than the best of the initial ones.
        """
        return len(self.gains) == _RECENT and sum(self.gains) <= _STALE_GAIN * gained


def next_mode(
    rng: np.random.Generator,
    *,
    density_share: float,
    local_share: float,
    stale: bool,
    has_options: bool,
) -> SearchMode:
    """Return a random mode of the next proposal: density, option, explore, local or global.

    Args:
        rng: of the draws.
        density_share: of proposals that TPE makes.
        local_share: of the others, those in the trust region.
        stale: whether the latest proposals gained next to nothing.
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
    """Return the probability `(k,)` of exploring each option; high for good and for rare ones.

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
    probabilities: Floats = weights / weights.sum()
    return probabilities
