"""NSGA-II: a genetic algorithm whose population spreads over the Pareto front.

Source: Deb, Pratap, Agarwal and Meyarivan, A Fast and Elitist Multiobjective Genetic Algorithm:
NSGA-II, IEEE Transactions on Evolutionary Computation 6(2), 2002.

Departures: there are no generations. Each result joins the population and the worst member leaves,
so that no trial waits for others. Infeasible results, which break a limit on outcomes, rank behind
all feasible ones, by the amount of their violation.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.base import Tuner, samples
from nni.hpo.encoding.encoded_space import EncodedSpace, VectorKey, vector_key
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.objectives import Objectives, objectives_of
from nni.hpo.pareto import crowding_distances, ranks
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import IntRange
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._breeding import child_of

_logger = logging.getLogger(__name__)

_TRIES: Final = 30
"""Limit of the children drawn for one that is allowed and new; a draw of the prior follows."""


@dataclass(frozen=True, slots=True)
class _Member:
    """Member of the population: a configuration with its losses and constraint violation."""

    configuration: JsonValue
    losses: tuple[float, ...]
    excess: float


@algorithm(
    "NSGA2",
    use_when="Several objectives and many cheap trials.",
    parallel="All are served; running trials are ignored.",
    extra="hpo",
)
class NSGA2(Tuner):
    """Genetic algorithm for several objectives: non-dominated sorting and crowding distance.

    Parents are chosen by tournament; crossover and mutation make a child. For several objectives
    give `optimize_mode` of the search as a dict of metric to mode; a single objective works too.

    Args:
        optimize_mode: `maximize` or `minimize`, for a single objective.
        population_size: number of results in the population, and of first draws from the prior.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [0, 1]}}
        >>> found = optimize(
        ...     lambda p: {"time": p["x"], "error": 1 - p["x"] ** 2},
        ...     space,
        ...     tuner="NSGA2",
        ...     tuner_args={"population_size": 8},
        ...     optimize_mode={"time": "minimize", "error": "minimize"},
        ...     trials=40,
        ...     seed=0,
        ... )
        >>> len(found.pareto_front) > 8
        True
    """

    multi_objective: ClassVar[bool] = True

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        population_size: Annotated[int, IntRange(2, 99_999)] = 40,
        seed: Seed = None,
    ) -> None:
        self._objectives = objectives_of(optimize_mode)
        self._size = population_size
        self._rng = np.random.default_rng(seed)
        self._prior = Random(seed)
        self._space = EncodedSpace(Space(()))
        self._members: list[_Member] = []
        self._seen: set[VectorKey] = set()

    def set_objectives(self, objectives: Objectives) -> None:
        """Set the objectives; called before the first space, if `multi_objective` is true."""
        self._objectives = objectives

    def update_search_space(self, search_space: JsonValue) -> None:
        """Encode a new space; remove members outside it, and forget which points were proposed."""
        self._space = EncodedSpace(parse_space(search_space, algorithm="NSGA2", priors=False))
        known, self._members, self._seen = self._members, [], set()
        self._members = [member for member in known if self._point(member) is not None]

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return a child of the population, or a prior draw, and mark its point as proposed."""
        del parameter_id, kwargs
        if not len(self._space):
            return {}
        point = self._proposal()
        self._seen.add(vector_key(point))
        return self._space.decode(point)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Add a configuration with its losses and constraint violation to the population."""
        del parameter_id, kwargs
        self._learn(parameters, value)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Learn samples; skip those outside the space or without all numbers."""
        for sample in samples(data):
            self._learn(sample.parameter, sample.value)

    def state(self) -> dict[str, JsonValue]:
        """Return random states, members with their losses, and proposed points as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {
            "rng": self._rng.bit_generator.state,
            "prior": random_state(self._prior),
            "members": [[m.configuration, list(m.losses), m.excess] for m in self._members],
            "seen": [list(key) for key in sorted(self._seen)],
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore random states, members with their losses, and proposed points.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        self._rng.bit_generator.state = state["rng"]
        restore_random(self._prior, state["prior"])
        self._members = [_Member(c, tuple(losses), float(e)) for c, losses, e in state["members"]]
        self._seen = {tuple(key) for key in state["seen"]}

    def _learn(self, configuration: JsonValue, value: JsonValue) -> None:
        losses, excess = self._objectives.losses(value), self._objectives.excess(value)
        if losses is None:
            _logger.warning("NSGA2 skips a result without a number per objective: %.200r", value)
            return
        member = _Member(configuration, losses, excess)
        point = self._point(member)
        if point is None:
            return
        self._seen.add(vector_key(point))
        self._members.append(member)
        if len(self._members) > self._size:
            del self._members[_order(self._members)[-1]]

    def _point(self, member: _Member) -> Floats | None:
        try:
            return self._space.encode(member.configuration)
        except ValueError as error:
            _logger.warning("NSGA2 drops a result outside the search space: %s", error)
            return None

    def _proposal(self) -> Floats:
        """Return an allowed child not yet proposed; else a prior draw, as before enough results."""
        if len(self._seen) >= self._size and len(self._members) > 1:
            place = {index: at for at, index in enumerate(_order(self._members))}
            for _ in range(_TRIES):
                pair = [self._winner(place), self._winner(place)]
                parents = np.array(
                    [self._space.encode(self._members[i].configuration) for i in pair]
                )
                child = child_of(self._space, parents, self._rng)
                if vector_key(child) not in self._seen and self._space.allows(child):
                    return child
        return self._fresh()

    def _fresh(self) -> Floats:
        """Return a draw from the prior; a new one, unless all attempts are known points."""
        for _ in range(_TRIES):
            point = self._space.sample_prior(self._prior)
            if vector_key(point) not in self._seen:
                break
        return point

    def _winner(self, place: dict[int, int]) -> int:
        """Return the winner of a tournament of two random members."""
        pair: Iterable[int] = self._rng.integers(len(self._members), size=2).tolist()
        return min(pair, key=place.__getitem__)


def _order(members: list[_Member]) -> list[int]:
    """Return positions, best first: feasible by front and crowding distance, then by violation."""
    within = [index for index, member in enumerate(members) if member.excess == 0]
    beyond = [index for index, member in enumerate(members) if member.excess > 0]
    fronts = ranks([members[index].losses for index in within])
    order: list[int] = []
    for front in range(max(fronts, default=-1) + 1):
        group = [index for index, rank in zip(within, fronts, strict=True) if rank == front]
        distances = crowding_distances([members[index].losses for index in group])
        by_distance = sorted(range(len(group)), key=lambda i: (-distances[i], group[i]))
        order += [group[i] for i in by_distance]
    return order + sorted(beyond, key=lambda index: (members[index].excess, index))
