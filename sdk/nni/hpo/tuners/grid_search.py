"""Grid search: every combination of a finite space, and ever finer grids of an infinite one.

Source: none; the grid is the Cartesian product of the parameters' values.
"""

import logging
from collections.abc import Iterable
from typing import ClassVar, Final

from nni.errors import NoMoreTrialError
from nni.hpo.base import Tuner, samples
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import checked_optimize_mode
from nni.hpo.registry.arguments import Mode
from nni.hpo.registry.declaration import algorithm
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._grid import Grid

_logger = logging.getLogger(__name__)

_FINEST: Final = 16
"""Last level of refinement, at which a `uniform` has 131,073 values."""


@algorithm(
    "GridSearch",
    use_when="The space is small, and every combination is to be tried.",
    parallel="All are served, in the order of the grid.",
    documented_as="nni.algorithms.hpo.gridsearch_tuner.GridSearchTuner",
    defaults={},
)
class GridSearchTuner(Tuner):
    """Grid search: the Cartesian product of all values, in a fixed order.

    The last parameter changes fastest. Combinations that break a constraint are left out. Imported
    configurations are skipped, and after a change of the space also those that were proposed
    before.

    A parameter with infinitely many values has three at first: both bounds and the middle, or the
    quartiles of a normal distribution. When all combinations have been proposed, a grid that is
    twice as fine follows, without those that were proposed, until the experiment ends. The steps of
    a logarithmic type are even in the logarithm.

    Args:
        optimize_mode: accepted for uniformity; without effect.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {
        ...     "x": {"_type": "choice", "_value": [1, 2]},
        ...     "y": {"_type": "randint", "_value": [0, 2]},
        ... }
        >>> found = optimize(lambda p: p["x"] + p["y"], space, tuner="GridSearch")
        >>> [trial.parameters for trial in found.trials]
        [{'x': 1, 'y': 0}, {'x': 1, 'y': 1}, {'x': 2, 'y': 0}, {'x': 2, 'y': 1}]
    """

    lookahead: ClassVar[bool] = True

    def __init__(self, optimize_mode: Mode = "minimize") -> None:
        checked_optimize_mode(optimize_mode)
        self._space = Space(())
        self._level = 0
        self._grid = Grid(self._space)
        self._next = 0
        self._skip: set[int] = set()
        self._handed_out: list[int] = []
        self._elsewhere: list[JsonValue] = []

    def update_search_space(self, search_space: JsonValue) -> None:
        """Start the grid of a new space; combinations already proposed are skipped in it."""
        self._space = parse_space(search_space, algorithm="GridSearch", priors=False)
        self._begin(Grid(self._space), level=0)

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return the next allowed combination, later of finer grids; raise if none is left."""
        del parameter_id, kwargs
        while not self._find_next():
            if not self._refine():
                raise NoMoreTrialError(f"all {self._grid.size} combinations have been proposed")
        number = self._next
        self._next += 1
        self._handed_out.append(number)
        return self._grid.decode(number)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Ignore a result: grid search learns nothing."""

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Mark imported configurations to be skipped; warn of those outside the grid."""
        imported = [sample.parameter for sample in samples(data)]
        marked = self._mark(imported)
        self._elsewhere += imported
        if marked < len(imported):
            _logger.warning(
                "GridSearch: %d of %d imported samples lie outside the grid",
                len(imported) - marked,
                len(imported),
            )

    def state(self) -> dict[str, JsonValue]:
        """Return the next number, numbers to skip and combinations handed out as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {
            "level": self._level,
            "next": self._next,
            "skip": sorted(self._skip),
            "handed_out": list(self._handed_out),
            "elsewhere": list(self._elsewhere),
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the next number, numbers to skip and combinations handed out.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        self._level = int(state.get("level", 0))  # none in a state from before infinite types
        self._grid = Grid(self._space, self._level)
        self._next, self._skip = int(state["next"]), set(state["skip"])
        self._handed_out, self._elsewhere = list(state["handed_out"]), list(state["elsewhere"])

    def _begin(self, grid: Grid, level: int) -> None:
        """Start a grid without the combinations that were proposed or imported before."""
        self._elsewhere += [self._grid.decode(number) for number in self._handed_out]
        self._grid, self._level = grid, level
        self._next, self._skip, self._handed_out = 0, set(), []
        self._mark(self._elsewhere)

    def _find_next(self) -> bool:
        """Go to the next allowed combination not to be skipped; return False if none is left."""
        self._next = self._grid.next_allowed(self._next)
        while self._next in self._skip:
            self._skip.discard(self._next)
            self._next = self._grid.next_allowed(self._next + 1)
        return self._next < self._grid.size

    def _refine(self) -> bool:
        """Start the next finer grid with more combinations; return False if there is none."""
        if not self._grid.refinable:
            return False
        for level in range(self._level + 1, _FINEST + 1):
            finer = Grid(self._space, level)
            if finer.size > self._grid.size:
                self._begin(finer, level)
                return True
        return False

    def _mark(self, configurations: Iterable[JsonValue]) -> int:
        """Skip configurations; return the number of those that lie on the grid."""
        marked = 0
        for configuration in configurations:
            try:
                number = self._grid.encode(configuration)
            except ValueError:
                continue
            marked += 1
            if number >= self._next:
                self._skip.add(number)
        return marked
