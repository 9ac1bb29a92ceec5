"""Sources of new configurations for asynchronous successive halving."""

import math
from random import Random
from typing import Final, Protocol

from nni.hpo.base import Tuner, generate
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.factory import create, find
from nni.hpo.space.domains import ChoiceDomain, Space

RANDOM: Final = "Random"
_FEWEST: Final = 8
"""Results that a budget must have before a model is made of them, at least."""
_PER_PARAMETER: Final = 2
"""The same, per parameter."""


class Searcher(Protocol):
    """Source of configurations that learns from their results."""

    def draw(self) -> JsonValue | None:
        """Return a new configuration, or None if there is none left."""
        ...

    def learn(self, budget: int, configuration: JsonValue, loss: float) -> None:
        """Record the loss of a configuration at a budget; infinite without a result."""
        ...


class PriorSearcher:
    """Searcher that draws from the prior of the space."""

    def __init__(self, space: Space, rng: Random) -> None:
        self._space = space
        self._rng = rng

    def draw(self) -> JsonValue | None:
        """Return a random draw from the prior, perhaps an earlier one again; never None."""
        return self._space.draw(self._rng)

    def learn(self, budget: int, configuration: JsonValue, loss: float) -> None:
        """Ignore a result: draws from the prior depend on none."""


class TunerSearcher:
    """Searcher that asks a tuner, which knows the results at one budget.

    Results at different budgets cannot be compared, so the tuner knows those of the greatest budget
    that has enough of them; as Falkner, Klein and Hutter do in BOHB, ICML 2018, section 3.

    Args:
        name: of the tuner.
        search_space: as the experiment gives it.
        space: the same, read.
        rng: draws the seed of each new tuner.

    Raises:
        ValueError: the tuner does not support the space.
    """

    def __init__(self, name: str, search_space: JsonValue, space: Space, rng: Random) -> None:
        self._name = name
        self._search_space = search_space
        self._rng = rng
        self._needed = max(_FEWEST, _PER_PARAMETER * parameter_count(space))
        self._results: dict[int, list[dict[str, JsonValue]]] = {}
        self._budget = 0
        self._asked = 0
        self._tuner = self._new_tuner()

    def draw(self) -> JsonValue | None:
        """Ask the tuner for a new configuration; return None if it has none left."""
        self._asked += 1
        answer = generate(self._tuner, [self._asked])
        return answer.parameters[0][1] if answer.parameters else None

    def learn(self, budget: int, configuration: JsonValue, loss: float) -> None:
        """Pass a finite loss to the tuner; at a larger budget with enough, start a new tuner."""
        if not math.isfinite(loss):
            return
        sample = {"parameter": configuration, "value": loss}
        known = self._results.setdefault(budget, [])
        known.append(sample)
        if budget == self._budget:
            self._tuner.import_data([sample])
        elif budget > self._budget and len(known) >= self._needed:
            self._budget = budget
            self._tuner = self._new_tuner()
            self._tuner.import_data(list(known))

    def _new_tuner(self) -> Tuner:
        seed = self._rng.getrandbits(31)
        tuner = create("tuner", self._name, seed=seed, optimize_mode="minimize")
        tuner.update_search_space(self._search_space)
        return tuner


def parameter_count(space: Space) -> int:
    """Return the number of parameters, choices and those in all branches included."""
    count = 0
    for parameter in space.parameters:
        count += 1
        if isinstance(parameter.domain, ChoiceDomain):
            branches = filter(None, parameter.domain.branches())
            count += sum(parameter_count(branch.space) for branch in branches)
    return count


def check_searcher(*, searcher: object, **others: object) -> None:
    """Raise ValueError unless the argument `searcher` is the name of a tuner.

    Args:
        searcher: value of the argument.
        others: the other arguments of the advisor, which do not matter.
    """
    del others
    if not isinstance(searcher, str):
        raise ValueError(f"searcher must be the name of a tuner, got {searcher!r}")  # noqa: TRY004 - one type for all faults of an input
    find("tuner", searcher)
