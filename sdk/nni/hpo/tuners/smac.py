"""Sequential model-based algorithm configuration: random forest and random search in turn.

Source: Hutter, Hoos and Leyton-Brown, Sequential Model-Based Optimization for General Algorithm
Configuration, LION 2011, section 4.

Departures: trials are deterministic and have one instance, so that there is no intensification;
results are warped before they are modelled (see `targets`); with many results the forest is grown
anew only after a twentieth of new ones; local search also starts from random candidates.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from nni.errors import NoMoreTrialError
from nni.hpo.arrays import Floats, Ints
from nni.hpo.encoding.encoded_space import VectorKey, vector_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.forest import RandomForest, grown_forest
from nni.hpo.models.targets import warped
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._model_based import ModelBasedTuner, loss_of_mode
from nni.hpo.tuners.bayesian.acquisition import expected_improvement
from nni.hpo.tuners.bayesian.candidates import best_untaken

_logger = logging.getLogger(__name__)

_NAME: Final = "SMAC"
_TYPES: Final = ("choice", "randint", "uniform", "loguniform", "quniform")
_TREES: Final = 10
_FEWEST: Final = 3
"""Results before which proposals are random."""
_RANDOM_EVERY: Final = 2
"""Interval of random proposals: one of so many."""
_REGROW_SHARE: Final = 0.05
"""Share of new results after which the forest is grown anew."""
_RANDOM_CANDIDATES: Final = 500
_STARTS: Final = 20
"""Local searches from the best results, and as many from the best random candidates."""
_ROUNDS: Final = 10
"""Largest number of rounds of a local search."""
_STEPS: Final = 4
"""Neighbours per ordered axis."""
_STEP: Final = 0.2
"""Their distance: the standard deviation of the step."""


@algorithm(
    "SMAC",
    use_when="Discrete or mixed spaces and few trials.",
    parallel="All are served, with distinct configurations.",
    documented_as="nni.algorithms.hpo.smac_tuner.SMACTuner",
    types=_TYPES,
    nested=False,
    keeps_first_space=True,
    extra="hpo",
)
class SMACTuner(ModelBasedTuner[float]):
    """Random forest, expected improvement and local search; for discrete spaces.

    The first proposal is the middle of all ranges and the first option of all choices. The space
    is set once: a later one is refused with a warning.

    Args:
        optimize_mode: `maximize` or `minimize`.
        config_dedup: whether no configuration is handed out twice; a finite space is then
            exhausted in the end.
        seed: of all draws; None for different ones in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"layers": {"_type": "choice", "_value": [1, 2, 4, 8]}}
        >>> found = optimize(lambda p: abs(p["layers"] - 4), space, tuner="SMAC", trials=4, seed=0)
        >>> found.best_parameters
        {'layers': 4}
    """

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        config_dedup: bool = False,  # noqa: FBT001, FBT002 - documented signature
        seed: Seed = None,
    ) -> None:
        super().__init__(
            _NAME,
            partial(parse_space, algorithm=_NAME, types=_TYPES, nested=False, priors=False),
            loss_of_mode(optimize_mode),
            seed,
        )
        self._dedup = config_dedup
        self._acquisition = expected_improvement(0.0)
        self._has_space = False
        self._proposals = 0
        self._proposed: dict[VectorKey, JsonValue] = {}
        """Configurations that were proposed, by their keys; empty without `config_dedup`."""
        self._grown_on = 0
        self._forest_seed = 0
        self._forest: RandomForest | None = None

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the first search space; check a later one, then keep the first with a warning."""
        if self._has_space:
            self._parse(search_space)
            _logger.warning("SMAC keeps its first search space; start a new experiment instead")
            return
        super().update_search_space(search_space)
        self._has_space = True

    def state(self) -> dict[str, JsonValue]:
        """Return the base's state, number of proposals and configurations handed out as JSON."""
        handed_out = [self._proposed[key] for key in sorted(self._proposed)]
        return {**super().state(), "proposals": self._proposals, "handed_out": handed_out}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the model's state and the vectors proposed; skip keys of an older encoding."""
        super().load_state(state)
        self._proposals = int(state["proposals"])
        # Older versions stored keys of another encoding; their observed and running trials remain.
        handed_out = [one for one in state["handed_out"] if isinstance(one, dict)]
        self._proposed = {vector_key(self._space.encode(one)): one for one in handed_out}

    def _propose(self) -> Floats:
        taken = self._taken() | self._proposed.keys()
        vector = self._next(taken)
        if vector is None:
            if self._dedup:
                raise NoMoreTrialError("all configurations of the search space were handed out")
            vector = self._random_vector()
        self._proposals += 1
        if self._dedup:
            self._proposed[vector_key(vector)] = self._space.decode(vector)
        return vector

    def _next(self, taken: set[VectorKey]) -> Floats | None:
        """Return the middle first, then random and promising vectors in turn; None if all taken."""
        if self._proposals == 0:
            first = self._space.middle()
            if vector_key(first) not in taken and self._space.allows(first):
                return first
        if len(self._losses) < _FEWEST or self._proposals % _RANDOM_EVERY == 0:
            return self._untaken_draw(taken)
        vector = self._most_promising(taken)
        return self._untaken_draw(taken) if vector is None else vector

    def _most_promising(self, taken: set[VectorKey]) -> Floats | None:
        """Return the untaken vector of greatest expected improvement in a local search, or None."""
        forest, targets = self._current_forest()
        incumbent = float(targets.min())
        feasibility = self._feasibility()

        def value_of(vectors: Floats) -> Floats:
            values = self._acquisition(*forest.predict(vectors), incumbent)[0]
            if feasibility is not None:
                values += feasibility.log_weight(self._space.features(vectors))
            return values

        observed = np.array(self._vectors)[np.argsort(targets, kind="stable")[:_STARTS]]
        drawn = self._space.sample(self._rng, _RANDOM_CANDIDATES)
        values = value_of(drawn)
        top = drawn[np.argsort(-values, kind="stable")[:_STARTS]]
        starts = np.concatenate([observed, top])
        visited, visited_values = self._local_search(starts, value_of)
        return best_untaken(
            self._space,
            np.concatenate([drawn, visited]),
            np.concatenate([values, visited_values]),
            taken,
        )

    def _local_search(
        self, starts: Floats, value_of: Callable[[Floats], Floats]
    ) -> tuple[Floats, Floats]:
        """Climb from each start to better neighbours; return all vectors visited and their values.

        Returns:
            All vectors visited `(m, d)` and their values `(m,)`.
        """
        values = value_of(starts)
        visited, visited_values = [starts], [values]
        for _ in range(_ROUNDS):
            neighbours, owners = self._neighbours(starts)
            near = value_of(neighbours)
            visited.append(neighbours)
            visited_values.append(near)
            tops = np.full(len(starts), -1)
            for index in np.argsort(near, kind="stable"):
                tops[owners[index]] = index  # the best neighbour of each start is written last
            moved = (tops >= 0) & (near[tops] > values)
            if not moved.any():
                break
            starts, values = neighbours[tops[moved]], near[tops[moved]]
        return np.concatenate(visited), np.concatenate(visited_values)

    def _neighbours(self, starts: Floats) -> tuple[Floats, Ints]:
        """Return vectors that differ from a start in one coordinate, and the start of each."""
        blocks = [self._space.neighbours(start) for start in starts]
        owners = [np.full(len(block), index) for index, block in enumerate(blocks)]
        ordered = np.flatnonzero(self._space.ordered)
        columns = np.tile(ordered, _STEPS * len(starts))
        owner = np.repeat(np.arange(len(starts)), _STEPS * len(ordered))
        steps = starts[owner]
        steps[np.arange(len(steps)), columns] += _STEP * self._rng.standard_normal(len(steps))
        return np.concatenate([*blocks, self._space.snap(steps)]), np.concatenate([*owners, owner])

    def _current_forest(self) -> tuple[RandomForest, Floats]:
        """Return the forest, grown anew if enough results have come in, and all targets."""
        targets = warped(np.array(self._losses))
        if len(self._losses) > self._grown_on * (1.0 + _REGROW_SHARE):
            self._grown_on = len(self._losses)
            self._forest_seed = int(self._rng.integers(2**31))
            self._forest = None
        if self._forest is None:
            count = self._grown_on
            self._forest = grown_forest(
                np.array(self._vectors[:count]),
                warped(np.array(self._losses[:count])),
                np.array([axis.categories for axis in self._space.axes]),
                _TREES,
                np.random.default_rng(self._forest_seed),
            )
        return self._forest, targets

    def _reset_model(self) -> None:
        self._grown_on = 0
        self._forest_seed = 0
        self._forest = None

    def _model_state(self) -> JsonValue:
        return [self._grown_on, self._forest_seed]

    def _load_model_state(self, state: JsonValue) -> None:
        self._grown_on, self._forest_seed = state
