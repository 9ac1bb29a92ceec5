"""A population that spreads over the Pareto front.

Source: Deb, Pratap, Agarwal and Meyarivan, A Fast and Elitist Multiobjective Genetic Algorithm:
NSGA-II, IEEE Transactions on Evolutionary Computation 6(2), 2002.

Departures: there are no generations. A result joins the population when it comes, and the worst
member leaves, so that no trial waits for others. Results beyond a limit come after all within, by
how far they are beyond.
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
"""Children until one is allowed and new; then a draw of the prior takes its place."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One result of the population."""

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
    """Several objectives at once: breeds the configurations that no other one beats.

    Good for many cheap trials. One objective works as well. Give `optimize_mode` of the search as a
    dict of metric to mode to have several.

    Args:
        optimize_mode: `maximize` or `minimize`, where there is one objective.
        population_size: how many results take part, >= 2; as many first points are draws.
        seed: of all draws; None for different ones in every process.
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
        """See the base."""
        self._objectives = objectives

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base. Members that are no points of the new space leave."""
        self._space = EncodedSpace(parse_space(search_space, algorithm="NSGA2"))
        known, self._members, self._seen = self._members, [], set()
        self._members = [member for member in known if self._point(member) is not None]

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        del parameter_id, kwargs
        if not len(self._space):
            return {}
        point = self._proposal()
        self._seen.add(vector_key(point))
        return self._space.decode(point)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """See the base."""
        del parameter_id, kwargs
        self._learn(parameters, value)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """See the base. Samples outside the space or without all numbers are skipped."""
        for sample in samples(data):
            self._learn(sample.parameter, sample.value)

    def state(self) -> dict[str, JsonValue]:
        """Return what `load_state` needs to go on from here, as JSON."""
        return {
            "rng": self._rng.bit_generator.state,
            "prior": random_state(self._prior),
            "members": [[m.configuration, list(m.losses), m.excess] for m in self._members],
            "seen": [list(key) for key in sorted(self._seen)],
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Go on from a state of a tuner that was built and given its space alike."""
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
        """Return a child that is new, or a draw of the prior."""
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
        """Return a draw of the prior, a new one where there seems to be one."""
        for _ in range(_TRIES):
            point = self._space.sample_prior(self._prior)
            if vector_key(point) not in self._seen:
                break
        return point

    def _winner(self, place: dict[int, int]) -> int:
        """Return the better of two random members."""
        pair: Iterable[int] = self._rng.integers(len(self._members), size=2).tolist()
        return min(pair, key=place.__getitem__)


def _order(members: list[_Member]) -> list[int]:
    """Return positions, best first: feasible ones by front and room, then by excess."""
    within = [index for index, member in enumerate(members) if member.excess == 0]
    beyond = [index for index, member in enumerate(members) if member.excess > 0]
    fronts = ranks([members[index].losses for index in within])
    order: list[int] = []
    for front in range(max(fronts, default=-1) + 1):
        group = [index for index, rank in zip(within, fronts, strict=True) if rank == front]
        room = crowding_distances([members[index].losses for index in group])
        by_room = sorted(range(len(group)), key=lambda i: (-room[i], group[i]))
        order += [group[i] for i in by_room]
    return order + sorted(beyond, key=lambda index: (members[index].excess, index))
