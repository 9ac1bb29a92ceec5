"""CMA-ES: evolution strategy that adapts the covariance matrix of a normal distribution.

Source: see `_covariance`; restarts with a larger population: Auger and Hansen, A Restart CMA
Evolution Strategy With Increasing Population Size, CEC 2005.

Departures: trials need not end in the order of their generation. The distribution is updated after
every `population_size` results, whichever generation they were drawn for.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.base import CANCELED
from nni.hpo.encoding.encoded_space import vector_key
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import IntRange
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._covariance import Covariance, Solution, population_of
from nni.hpo.tuners._model_based import ModelBasedTuner, loss_of_mode

_NAME: Final = "CmaEs"
_FREE_TRIES: Final = 20
"""Limit of the draws for a point that is allowed and new."""


@algorithm(
    "CmaEs",
    use_when="Ten to a hundred numeric parameters that depend on each other, some hundred trials.",
    parallel="All are served; a generation is learnt when enough of its results are there.",
    nested=False,
    extra="hpo",
)
class CmaEs(ModelBasedTuner[float]):
    """CMA-ES for numeric parameters, with margins for discrete ones and choices.

    Conditional spaces are not supported.

    Args:
        optimize_mode: `maximize` or `minimize`.
        population_size: results per update; None for `4 + 3 ln(parameters)`.
        restart_factor: growth of the population at a restart, which follows convergence.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {name: {"_type": "uniform", "_value": [-1, 1]} for name in "xyz"}
        >>> found = optimize(
        ...     lambda p: sum(value**2 for value in p.values()),
        ...     space,
        ...     tuner="CmaEs",
        ...     trials=150,
        ...     seed=0,
        ... )
        >>> found.best_value < 0.01
        True
    """

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        population_size: Annotated[int | None, IntRange(2, 99_999)] = None,
        restart_factor: Annotated[int, IntRange(1, 99)] = 2,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            _NAME,
            partial(parse_space, algorithm=_NAME, nested=False, priors=False),
            loss_of_mode(optimize_mode),
            seed,
        )
        self._population = population_size
        self._restart_factor = restart_factor
        self._drawn_solutions: dict[int, Solution] = {}
        self._latest: Solution | None = None
        """Last draw of the distribution; None if the last point came from the prior."""
        self._result_of: Solution | None = None
        """The draw whose result is being received."""
        self._generation: list[tuple[float, Solution]] = []
        self._distribution: Covariance = self._first_distribution()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return the next configuration, and remember the CMA-ES solution that it represents."""
        configuration = super().generate_parameters(parameter_id, **kwargs)
        if self._latest is not None:
            self._drawn_solutions[parameter_id] = self._latest
        return configuration

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Learn a result, with its CMA-ES solution; one without a loss counts as infinite."""
        solution = self._result_of = self._drawn_solutions.pop(parameter_id, None)
        known = len(self._losses)
        super().receive_trial_result(parameter_id, parameters, value, **kwargs)
        self._close(solution, known)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Close a trial; one without a loss enters its generation with an infinite one.

        Args:
            parameter_id: of the trial.
            success: whether it has completed.
            **kwargs: see `Tuner.trial_end`; a canceled trial enters no generation.
        """
        solution = self._result_of = self._drawn_solutions.pop(parameter_id, None)
        known = len(self._losses)
        super().trial_end(parameter_id, success, **kwargs)
        self._close(None if kwargs.get("event") in CANCELED else solution, known)

    def _close(self, solution: Solution | None, known: int) -> None:
        """Add a solution with an infinite loss unless a loss was added to the `known` ones."""
        self._result_of = None
        if solution is not None and len(self._losses) == known:
            self._update(solution, math.inf)

    def _add(self, configuration: JsonValue, placed: Mapping[str, JsonValue], loss: float) -> None:
        super()._add(configuration, placed, loss)
        self._update(self._result_of or self._solution_at(self._vectors[-1]), loss)

    def _update(self, solution: Solution, loss: float) -> None:
        self._generation.append((loss, solution))
        if len(self._generation) < self._distribution.population:
            return
        best_first = sorted(self._generation, key=lambda item: item[0])
        self._generation = []
        self._distribution.tell([solution for _, solution in best_first])
        if self._distribution.converged:
            larger = self._distribution.population * self._restart_factor
            self._distribution = self._distribution_at(
                self._solution_at(self._space.sample_prior(self._prior)).numbers, larger
            )

    def _propose(self) -> Floats:
        taken = self._taken()
        for _ in range(_FREE_TRIES):
            solution = self._distribution.draw(self._rng)
            point = self._point_of(solution)
            if vector_key(point) not in taken and self._space.allows(point):
                self._latest = solution
                return point
        self._latest = None
        return self._random_vector()

    def _first_distribution(self) -> Covariance:
        """Return a distribution centred in the space, with the given or default population."""
        numbers = int(self._space.ordered.sum())
        population = self._population or population_of(len(self._space))
        return self._distribution_at(np.full(numbers, 0.5), population)

    def _distribution_at(self, mean: Floats, population: int) -> Covariance:
        steps, counts = [], []
        for axis in self._space.axes:
            if axis.categories:
                counts.append(axis.categories)
            else:
                several = axis.values is not None and len(axis.values) > 1
                steps.append(1.0 / len(axis.values) if several else 0.0)  # type: ignore[arg-type] # several
        return Covariance(mean, np.array(steps), counts, population)

    def _point_of(self, solution: Solution) -> Floats:
        """Return the point of the space nearest to a solution."""
        point = np.empty(len(self._space))
        point[self._space.ordered] = solution.numbers
        point[~self._space.ordered] = solution.options
        snapped: Floats = self._space.snap(point[None, :])[0]
        return snapped

    def _solution_at(self, point: Floats) -> Solution:
        """Return a point as a solution of the distribution."""
        ordered = self._space.ordered
        return Solution(point[ordered], point[~ordered].astype(np.int64))

    def _reset_model(self) -> None:
        self._drawn_solutions = {}
        self._generation = []
        self._distribution = self._first_distribution()

    def _model_state(self) -> JsonValue:
        return {
            "distribution": self._distribution.state(),
            "generation": [[loss, _plain(solution)] for loss, solution in self._generation],
            "drawn": [[number, _plain(s)] for number, s in self._drawn_solutions.items()],
        }

    def _load_model_state(self, state: JsonValue) -> None:
        self._distribution.load_state(state["distribution"])
        self._generation = [(float(loss), _solution(plain)) for loss, plain in state["generation"]]
        self._drawn_solutions = {number: _solution(plain) for number, plain in state["drawn"]}


def _plain(solution: Solution) -> JsonValue:
    return [solution.numbers.tolist(), solution.options.tolist()]


def _solution(plain: JsonValue) -> Solution:
    numbers, options = plain
    return Solution(np.array(numbers, dtype=np.float64), np.array(options, dtype=np.int64))
