"""Successive halving: many configurations at a small budget, the best of them at larger ones.

No I/O, no randomness: a bracket says how many new configurations it wants and which of those that
have been evaluated go on.

Source: Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter
Optimization, AISTATS 2016, as used by Li et al., Hyperband, arXiv 1603.06560.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from nni.hpo.json_value import JsonValue

_GUARD: Final = 1e-6
"""Added before a floor: 81 / 3**4 may come out a little below 1."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a bracket."""

    size: int
    """How many configurations run in it, >= 1."""

    budget: int
    """What each of them gets, >= 1."""


def rounds_of(size: int, first_budget: float, eta: int, count: int) -> tuple[Round, ...]:
    """Return the rounds of a bracket.

    Args:
        size: configurations in the first round.
        first_budget: of each of them; each later round has `eta` times as much.
        eta: a round keeps the best `1 / eta`.
        count: number of rounds; a round that nobody would reach is left out.
    """
    rounds = [
        Round(size // eta**i, max(1, int(first_budget * eta**i + _GUARD))) for i in range(count)
    ]
    return tuple(entry for entry in rounds if entry.size)


def deepest_bracket(smallest: int, largest: int, eta: int) -> int:
    """Return how often a budget can grow from `smallest` by `eta` without passing `largest`."""
    steps = 0
    while smallest * eta ** (steps + 1) <= largest:
        steps += 1
    return steps


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one configuration."""

    bracket: int
    """Number of the bracket, counting from 0 over the whole experiment."""

    round: int

    index: int
    """Within the round."""

    budget: int

    configuration: JsonValue
    """Without the budget; None for a new one, which the caller is to draw."""

    @property
    def id(self) -> str:
        """Unique within the experiment."""
        return f"{self.bracket}_{self.round}_{self.index}"


class Bracket:
    """One bracket: gives jobs, is told what came of them, promotes when a round is complete.

    Configurations without a result rank last: one is promoted only where too few others are left.

    Args:
        number: names the bracket in the ids of its jobs.
        rounds: sizes and budgets.
    """

    def __init__(self, number: int, rounds: tuple[Round, ...]) -> None:
        self._number = number
        self._rounds = rounds
        self._round = 0
        self._given = 0
        self._promoted: deque[JsonValue] = deque()
        self._ended: list[tuple[float, int, JsonValue]] = []

    @property
    def finished(self) -> bool:
        """Whether its last round is complete."""
        return self._round == len(self._rounds)

    def next_job(self) -> Job | None:
        """Return a job that can start now, or None if all of this round have been given."""
        if self.finished or self._given == self._rounds[self._round].size:
            return None
        configuration = self._promoted.popleft() if self._round else None
        index = self._given
        self._given += 1
        budget = self._rounds[self._round].budget
        return Job(self._number, self._round, index, budget, configuration)

    def end(self, index: int, configuration: JsonValue, loss: float) -> None:
        """Learn that a job of the current round has ended; called once per job.

        Args:
            index: of the job.
            configuration: what it ran, without the budget.
            loss: smaller is better; infinite if it gave no result.
        """
        self._ended.append((loss, index, configuration))
        if len(self._ended) < self._rounds[self._round].size:
            return
        best_first = sorted(self._ended, key=lambda item: item[:2])
        self._round += 1
        self._given, self._ended = 0, []
        if not self.finished:
            kept = best_first[: self._rounds[self._round].size]
            self._promoted = deque(item[2] for item in kept)
