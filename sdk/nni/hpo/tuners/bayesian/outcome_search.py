"""A Gaussian process for each of several outcomes: GPTuner's way with objectives and limits."""

from typing import ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.encoding.unit_cube import best_free
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, OutcomeLimit, part_of, scalar_metric
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._model_based import PointTuner
from nni.hpo.tuners.bayesian.acquisition_optimizer import everywhere, whole
from nni.hpo.tuners.bayesian.acquisition_search import search_effort
from nni.hpo.tuners.bayesian.outcome_models import OutcomeModels
from nni.hpo.tuners.bayesian.process_settings import ProcessSettings

_GREATEST: Final = 1e300
"""By how much a limit is exceeded whose metric is missing; a number, as states are JSON."""


class OutcomeSearch(PointTuner[TreeCube, tuple[float, ...]]):
    """Lowers several losses, or one within limits; in spaces of any types.

    A result is a tuple: the losses, then by how much each limit is exceeded.

    Args:
        objectives: what is to be minimised, and the limits.
        settings: of the processes and the search.
        seed: of all draws; None for different ones in every process.
    """

    algorithm: ClassVar[str] = "GPTuner"
    prepares: ClassVar[bool] = True

    def __init__(self, objectives: Objectives, settings: ProcessSettings, seed: int | None) -> None:
        super().__init__(seed)
        self._objectives = objectives
        self._settings = settings
        self._models = self._new_models()

    def _cube_of(self, search_space: JsonValue) -> TreeCube:
        return TreeCube(parse_space(search_space, algorithm=self.algorithm))

    def _loss_of(self, value: JsonValue) -> tuple[float, ...] | None:
        losses = self._objectives.losses(value)
        if losses is None:
            return None
        return (*losses, *(_excess(value, limit) for limit in self._objectives.limits))

    def _propose(self) -> Floats:
        settings = self._settings
        if len(self._losses) < settings.cold_start:
            return self._drawn()
        points, outcomes = np.array(self._points), np.array(self._losses)
        survey = self._models.survey(points, outcomes, list(self._running.values()))
        effort = search_effort(
            survey.modelled,
            settings.time_limit_s / outcomes.shape[1],
            settings.most_samples,
            settings.most_climbs,
        )
        taken = self._running_keys() | self._observed_keys()
        every = self._cube.all_points(effort.samples)
        if every is not None:
            found = best_free(self._cube, every, survey.prospect.rate(every), taken)
        else:
            rated = everywhere(self._cube, points[survey.good], effort.samples, self._rng)
            rated = self._cube.allowed(rated)
            region = whole(self._cube)
            found = survey.prospect.best(rated, region, taken, effort, discrete=True)
        return self._drawn() if found is None else found

    def _keep(self, configuration: JsonValue, point: Floats, loss: tuple[float, ...]) -> None:
        super()._keep(configuration, point, tuple(loss))  # a state has lists

    def _forget_model(self) -> None:
        self._models = self._new_models()

    def _model_state(self) -> JsonValue:
        return self._models.state()

    def _load_model_state(self, state: JsonValue) -> None:
        self._models.load_state(state)

    def _new_models(self) -> OutcomeModels:
        losses, limits = len(self._objectives.items), len(self._objectives.limits)
        kernel, alpha = self._settings.kernel, self._settings.alpha
        return OutcomeModels(losses, losses + limits, kernel, alpha, self._cube)


def _excess(value: JsonValue, limit: OutcomeLimit) -> float:
    """Return by how much a report exceeds a limit; negative if it stays below."""
    number = scalar_metric(part_of(value, limit.metric))
    if number is None:
        return _GREATEST
    return min(max(number - limit.max, -_GREATEST), _GREATEST)
