"""Successive halving: many configurations at a small budget, the best of them at larger ones.

Pure: a bracket requests new configurations and promotes evaluated ones, without I/O or randomness.

Source: Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter
Optimization, AISTATS 2016, as used by Li et al., Hyperband, arXiv 1603.06560.
"""

import math
from bisect import insort
from dataclasses import dataclass, field
from typing import Final

from nni.hpo.json_value import JsonValue

_GUARD: Final = 1e-6
"""Added before a floor: 81 / 3**4 may come out a little below 1."""


@dataclass(frozen=True, slots=True)
class Round:
    """Round of a bracket: its number of configurations and their budget."""

    size: int
    """Number of configurations, >= 1."""

    budget: int
    """Budget of each configuration, >= 1."""


def rounds_of(size: int, first_budget: float, eta: int, count: int) -> tuple[Round, ...]:
    """Return at most `count` rounds; sizes shrink, budgets grow by `eta`; empty ones are left out.

    Args:
        size: configurations in the first round.
        first_budget: of each of them; each later round has `eta` times as much.
        eta: a round keeps the best `1 / eta`.
        count: number of rounds; a round without configurations is left out.
    """
    rounds = [
        Round(size // eta**i, max(1, int(first_budget * eta**i + _GUARD))) for i in range(count)
    ]
    return tuple(entry for entry in rounds if entry.size)


def deepest_bracket(smallest: int, largest: int, eta: int) -> int:
    """Return the number of times a budget can grow by `eta` from `smallest` to `largest`."""
    steps = 0
    while smallest * eta ** (steps + 1) <= largest:
        steps += 1
    return steps


@dataclass(frozen=True, slots=True)
class Job:
    """Job of a bracket: one configuration at one budget, perhaps from another job's checkpoint."""

    bracket: int
    """Number of the bracket, counting from 0 over the whole experiment."""

    round: int

    index: int
    """Within the round."""

    budget: int

    configuration: JsonValue
    """Without the budget; None for a new one, which the caller draws."""

    source: str | None = None
    """Id of the job whose training this one continues; None for none, or if it failed."""

    @property
    def id(self) -> str:
        """Id `<bracket>_<round>_<index>`, unique within the experiment."""
        return f"{self.bracket}_{self.round}_{self.index}"


@dataclass(frozen=True, slots=True, order=True)
class _Ended:
    """Ended job with its loss; ordered from best to worst."""

    loss: float
    index: int
    """Within the round."""
    job: Job = field(compare=False)
    configuration: JsonValue = field(compare=False)


class Bracket:
    """State machine of one bracket: hands out jobs, takes results, promotes configurations.

    A round is complete when all its jobs have ended. Then the best are promoted; those without a
    result rank last, and are promoted only if too few others are left.

    Args:
        number: names the bracket in the ids of its jobs.
        rounds: sizes and budgets.
        asynchronous: whether configurations are promoted before their round is complete: the best
            of the ended jobs, in proportion to their share of the round, and before new ones begin.
            The sizes of the rounds stay the same.

    Source of asynchronous promotion: Li et al., A System for Massively Parallel Hyperparameter
    Tuning, MLSys 2020, section 3, within the bounds of one bracket.
    """

    def __init__(
        self, number: int, rounds: tuple[Round, ...], *, asynchronous: bool = False
    ) -> None:
        self._number = number
        self._rounds = rounds
        self._asynchronous = asynchronous
        self._given = [0] * len(rounds)
        self._ended: list[list[_Ended]] = [[] for _ in rounds]
        self._promoted: list[set[int]] = [set() for _ in rounds]

    @property
    def finished(self) -> bool:
        """True if the last round is complete, and so all others."""
        # The last promotion of a round follows its completion, so earlier rounds are complete.
        return len(self._ended[-1]) == self._rounds[-1].size

    def next_job(self) -> Job | None:
        """Take the next job that can start; None if results must come first or all are taken."""
        places = range(len(self._rounds))
        for place in reversed(places) if self._asynchronous else places:
            if self._given[place] == self._rounds[place].size:
                continue
            if place == 0:
                return self._job(0, None)
            promoted = self._promoted_from(place - 1)
            if promoted is not None:
                return self._job(place, promoted)
        return None

    def end(self, job: Job, configuration: JsonValue, loss: float) -> None:
        """Insert an ended job, by its loss, into the ranking of its round.

        Args:
            job: as `next_job` returned it.
            configuration: of the job, without the budget.
            loss: smaller is better; infinite without a result.
        """
        insort(self._ended[job.round], _Ended(loss, job.index, job, configuration))

    def _job(self, place: int, promoted: _Ended | None) -> Job:
        index, budget = self._given[place], self._rounds[place].budget
        self._given[place] += 1
        if promoted is None:
            return Job(self._number, place, index, budget, None)
        source = promoted.job.id if promoted.loss < math.inf else None
        return Job(self._number, place, index, budget, promoted.configuration, source)

    def _promoted_from(self, place: int) -> _Ended | None:
        """Mark the best unpromoted job of a round as promoted and return it; None if too early."""
        ended, promoted = self._ended[place], self._promoted[place]
        complete = len(ended) == self._rounds[place].size
        if len(promoted) >= self._places(place):
            return None
        best = next(one for one in ended if one.index not in promoted)
        if best.loss == math.inf and not complete:
            return None
        promoted.add(best.index)
        return best

    def _places(self, place: int) -> int:
        """Return how many promotions a round allows in all so far; early ones if asynchronous."""
        size, following = self._rounds[place].size, self._rounds[place + 1].size
        ended = len(self._ended[place])
        if self._asynchronous:
            return ended * following // size
        return following if ended == size else 0
