"""Policies that share trials among tuners: in turn, or by a bandit.

Source of the bandit: Auer, Cesa-Bianchi and Fischer, Finite-time analysis of the multiarmed bandit
problem, Machine Learning 47, 2002, policy UCB1.

Departures: the reward of a trial is 1 if its result is among the best quarter of all results so
far, else 0, so that it depends on no scale; only the last 20 rewards of a tuner count, since it
changes while it learns; each has five trials first; the bound is narrower, as an experiment has
tens or hundreds of trials.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from typing import Any, Final, Literal, TypeAlias, get_args

SharePolicy: TypeAlias = Literal["equal", "bandit"]

SHARE_POLICIES: Final = get_args(SharePolicy)

_GOOD_SHARE: Final = 4
"""A result is good if it is among the best 1 / 4 of all."""
_WINDOW: Final = 20
"""Last rewards of a tuner that count."""
_FIRST: Final = 5
"""Trials of each tuner, in turn, before the bandit decides."""
_EXPLORATION: Final = 0.5
"""Weight of the bound; UCB1 has the square root of 2."""
_UNKNOWN: Final = 0.5
"""Mean reward of a tuner whose trials all run."""


class TrialShares:
    """Counter of the trials and rewards of several tuners, which selects the next tuner.

    Deterministic: the same calls give the same turns.

    Args:
        policy: `equal` for the tuner with the fewest trials, `bandit` for the highest bound.
        count: number of tuners.
    """

    def __init__(self, policy: SharePolicy, count: int) -> None:
        self._policy = policy
        self._trials = [0] * count
        self._rewards: list[deque[int]] = [deque(maxlen=_WINDOW) for _ in range(count)]
        """Last rewards of each tuner."""
        self._losses: list[float] = []
        """All finite results, as losses, in ascending order."""

    @property
    def trials(self) -> list[int]:
        """Number of trials of each tuner."""
        return list(self._trials)

    def order(self) -> list[int]:
        """Return tuner indices, the next turn first: by fewest trials, or by highest bound.

        Ties are decided by the fewest trials, then by the order of the list.
        """
        indices = range(len(self._trials))
        if self._policy == "equal":
            return sorted(indices, key=lambda index: self._trials[index])
        return sorted(indices, key=lambda index: (-self._bound(index), self._trials[index]))

    def _bound(self, index: int) -> float:
        """Return the upper confidence bound of a mean reward; infinite for the first trials."""
        trials, rewards = self._trials[index], self._rewards[index]
        if trials < _FIRST:
            return math.inf
        mean = sum(rewards) / len(rewards) if rewards else _UNKNOWN
        return mean + _EXPLORATION * math.sqrt(math.log(sum(self._trials)) / trials)

    def started(self, index: int) -> None:
        """Count a trial of a tuner."""
        self._trials[index] += 1

    def succeeded(self, index: int, loss: float) -> None:
        """Reward a tuner by the rank of a trial's loss among all; one that is not finite is bad."""
        if not math.isfinite(loss):
            self.failed(index)
            return
        better = bisect_left(self._losses, loss)
        insort(self._losses, loss)
        good = better < max(1.0, len(self._losses) / _GOOD_SHARE)
        self._rewards[index].append(int(good))

    def failed(self, index: int) -> None:
        """Record a reward of 0 of a tuner for a trial that has ended without a result."""
        self._rewards[index].append(0)

    def state(self) -> dict[str, Any]:
        """Return counts, rewards and losses as JSON, for `load_state`."""
        rewards = [list(each) for each in self._rewards]
        return {"trials": self.trials, "rewards": rewards, "losses": list(self._losses)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore counts, rewards and losses from a state of the same number of tuners."""
        self._trials = list(state["trials"])
        self._rewards = [deque(each, maxlen=_WINDOW) for each in state["rewards"]]
        self._losses = list(state["losses"])
