"""Sequential model-based algorithm configuration: a random forest proposes, chance interleaves.

Source: Hutter, Hoos and Leyton-Brown, Sequential Model-Based Optimization for General Algorithm
Configuration, LION 2011, section 4.

Departures: trials are deterministic and have one instance, so that there is no intensification;
results are warped before they are modelled (see `targets`); with many results the forest is grown
anew only after a twentieth of new ones.
"""

import logging
from collections.abc import Callable
from typing import ClassVar, Final

import numpy as np

from nni.errors import NoMoreTrialError
from nni.hpo.arrays import Floats, Ints
from nni.hpo.encoding.unit_cube import PointKey, UnitCube, best_free, point_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.forest import Forest, grown_forest
from nni.hpo.models.targets import warped
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._model_based import ModelBasedTuner
from nni.hpo.tuners.bayesian.acquisition import expected_improvement

_logger = logging.getLogger(__name__)

_TYPES: Final = ("choice", "randint", "uniform", "loguniform", "quniform")
_TREES: Final = 10
_FEWEST: Final = 3
"""Results before which proposals are random."""
_RANDOM_EVERY: Final = 2
"""One proposal of so many is random."""
_REGROW_SHARE: Final = 0.05
_RANDOM_POINTS: Final = 500
_STARTS: Final = 10
"""Local searches from the best results, and as many from the best random points."""
_ROUNDS: Final = 10
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
class SMACTuner(ModelBasedTuner[UnitCube]):
    """Random forest, expected improvement and local search; for discrete spaces.

    The first proposal is the middle of all ranges and the first option of all choices. The space
    is set once: a later one is refused with a warning.

    Args:
        optimize_mode: `maximize` or `minimize`.
        config_dedup: whether no configuration is handed out twice; a finite space is then
            exhausted in the end.
        seed: of all draws; None for different ones in every process.
    """

    algorithm: ClassVar[str] = "SMAC"

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        config_dedup: bool = False,  # noqa: FBT001, FBT002 - documented signature
        seed: Seed = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        self._dedup = config_dedup
        self._acquisition = expected_improvement(0.0)
        self._has_space = False
        self._proposals = 0
        self._handed_out: set[PointKey] = set()
        self._grown_on = 0
        self._forest_seed = 0
        self._forest: Forest | None = None

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base. Works once.

        A later space is checked, and left aside with a warning.
        """
        if self._has_space:
            self._cube_of(search_space)
            _logger.warning("SMAC keeps its first search space; start a new experiment instead")
            return
        super().update_search_space(search_space)
        self._has_space = True

    def state(self) -> dict[str, JsonValue]:
        """See the base."""
        handed_out = [list(key) for key in sorted(self._handed_out)]
        return {**super().state(), "proposals": self._proposals, "handed_out": handed_out}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """See the base."""
        super().load_state(state)
        self._proposals = int(state["proposals"])
        self._handed_out = {tuple(key) for key in state["handed_out"]}

    def _cube_of(self, search_space: JsonValue) -> UnitCube:
        return UnitCube(
            parse_space(search_space, algorithm=self.algorithm, types=_TYPES, nested=False)
        )

    def _propose(self) -> Floats:
        taken = self._running_keys() | self._observed_keys()
        if self._dedup:
            taken |= self._handed_out
        point = self._next(taken)
        if point is None:
            if self._dedup:
                raise NoMoreTrialError("all configurations of the search space were handed out")
            point = self._drawn()
        self._proposals += 1
        if self._dedup:
            self._handed_out.add(point_key(point))
        return point

    def _next(self, taken: set[PointKey]) -> Floats | None:
        """Return a point that is not taken, or None if there is none."""
        if self._proposals == 0:
            first = self._cube.first()
            if point_key(first) not in taken and self._cube.allows(first):
                return first
        if len(self._losses) < _FEWEST or self._proposals % _RANDOM_EVERY == 0:
            return self._free_draw(taken)
        point = self._most_promising(taken)
        return self._free_draw(taken) if point is None else point

    def _most_promising(self, taken: set[PointKey]) -> Floats | None:
        forest, targets = self._current_forest()
        best = float(targets.min())

        def rate(points: Floats) -> Floats:
            means, deviations = forest.predict(_columns(self._cube, points))
            return self._acquisition(means, deviations, best)[0]

        observed = np.array(self._points)[np.argsort(targets, kind="stable")[:_STARTS]]
        points = self._cube.draw(self._rng, _RANDOM_POINTS)
        ratings = rate(points)
        top = points[np.argsort(-ratings, kind="stable")[:_STARTS]]
        starts = np.concatenate([observed, top])
        near, near_ratings = self._searched_around(starts, rate)
        return best_free(
            self._cube,
            np.concatenate([points, near]),
            np.concatenate([ratings, near_ratings]),
            taken,
        )

    def _searched_around(
        self, starts: Floats, rate: Callable[[Floats], Floats]
    ) -> tuple[Floats, Floats]:
        """Go from each start to better neighbours until there is none.

        Returns:
            All points seen `(m, d)` and their ratings `(m,)`.
        """
        ratings = rate(starts)
        seen, seen_ratings = [starts], [ratings]
        for _ in range(_ROUNDS):
            around, owners = self._around(starts)
            near = rate(around)
            seen.append(around)
            seen_ratings.append(near)
            tops = np.full(len(starts), -1)
            for index in np.argsort(near, kind="stable"):
                tops[owners[index]] = index  # the best neighbour of each start is written last
            moved = (tops >= 0) & (near[tops] > ratings)
            if not moved.any():
                break
            starts, ratings = around[tops[moved]], near[tops[moved]]
        return np.concatenate(seen), np.concatenate(seen_ratings)

    def _around(self, starts: Floats) -> tuple[Floats, Ints]:
        """Return points that differ from a start in one coordinate, and whose neighbour each is."""
        blocks = [self._cube.neighbours(start) for start in starts]
        owners = [np.full(len(block), index) for index, block in enumerate(blocks)]
        ordered = [column for column, axis in enumerate(self._cube.axes) if axis.ordered]
        columns = np.tile(ordered, _STEPS * len(starts)).astype(np.int64)
        owner = np.repeat(np.arange(len(starts)), _STEPS * len(ordered))
        steps = starts[owner]
        steps[np.arange(len(steps)), columns] += _STEP * self._rng.standard_normal(len(steps))
        return np.concatenate([*blocks, self._cube.snap(steps)]), np.concatenate([*owners, owner])

    def _current_forest(self) -> tuple[Forest, Floats]:
        """Return the forest, grown anew if enough results have come in, and all targets."""
        targets = warped(np.array(self._losses))
        if len(self._losses) > self._grown_on * (1.0 + _REGROW_SHARE):
            self._grown_on = len(self._losses)
            self._forest_seed = int(self._rng.integers(2**31))
            self._forest = None
        if self._forest is None:
            count = self._grown_on
            self._forest = grown_forest(
                _columns(self._cube, np.array(self._points[:count])),
                warped(np.array(self._losses[:count])),
                _categories(self._cube),
                _TREES,
                np.random.default_rng(self._forest_seed),
            )
        return self._forest, targets

    def _forget_model(self) -> None:
        self._grown_on = 0
        self._forest_seed = 0
        self._forest = None

    def _model_state(self) -> JsonValue:
        return [self._grown_on, self._forest_seed]

    def _load_model_state(self, state: JsonValue) -> None:
        self._grown_on, self._forest_seed = state


def _categories(cube: UnitCube) -> Ints:
    """Return per axis how many unordered options it has, 0 for ordered values."""
    return np.array([0 if axis.ordered else len(axis.options) for axis in cube.axes])


def _columns(cube: UnitCube, points: Floats) -> Floats:
    """Return points with the positions of unordered options instead of their coordinates."""
    counts = _categories(cube)
    return np.where(counts > 0, np.round(points * np.maximum(counts - 1, 0)), points)
