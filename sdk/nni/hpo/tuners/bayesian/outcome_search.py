"""Bayesian search with several objectives, or limits on outcomes."""

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.json_value import JsonValue
from nni.hpo.models.space_prior import space_prior
from nni.hpo.objectives import Objectives, OutcomeLimit, part_of, scalar_metric
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._model_based import ModelBasedTuner
from nni.hpo.tuners.bayesian.acquisition_optimizer import AcquisitionOptimizer, weighted_by_success
from nni.hpo.tuners.bayesian.candidates import global_candidates, whole_region
from nni.hpo.tuners.bayesian.outcome_models import OutcomeModels
from nni.hpo.tuners.bayesian.prior_acquisition import weighted_by_prior
from nni.hpo.tuners.bayesian.search_budget import GPSettings, search_budget

_GREATEST: Final = 1e300
"""By how much a limit is exceeded whose metric is missing; a number, as states are JSON."""


class OutcomeSearch(ModelBasedTuner[tuple[float, ...]]):
    """Search that minimises several losses, or one within limits, in spaces of any types.

    A result is a tuple: the losses, then by how much each limit is exceeded.

    Args:
        algorithm: name of the tuner, for messages.
        objectives: what is to be minimised, and the limits.
        settings: of the processes and the search.
        seed: of all draws; None for different ones in every process.
    """

    prepares = True

    def __init__(
        self, algorithm: str, objectives: Objectives, settings: GPSettings, seed: int | None
    ) -> None:
        super().__init__(algorithm, partial(parse_space, algorithm=algorithm), self._outcomes, seed)
        self._objectives = objectives
        self._settings = settings
        self._models = self._new_models()
        self._user_prior = space_prior(self._space)

    @property
    def space(self) -> EncodedSpace:
        """The space that is searched."""
        return self._space

    def _outcomes(self, value: JsonValue) -> tuple[float, ...] | None:
        """Return losses and excesses of a report; None if a loss is missing."""
        losses = self._objectives.losses(value)
        if losses is None:
            return None
        return (*losses, *(_excess(value, limit) for limit in self._objectives.limits))

    def _propose(self) -> Floats:
        settings, space = self._settings, self._space
        if len(self._losses) < settings.cold_start:
            return self._random_vector()
        vectors, outcomes = np.array(self._vectors), np.array(self._losses)
        fit = self._models.update(vectors, outcomes, self._running_vectors())
        budget = search_budget(
            fit.modelled,
            settings.time_limit_s / outcomes.shape[1],
            settings.most_samples,
            settings.most_climbs,
        )
        acquisition = weighted_by_success(space, fit.acquisition, self._feasibility())
        acquisition = weighted_by_prior(acquisition, self._user_prior, len(self._losses))
        optimizer = AcquisitionOptimizer(space, acquisition, self._taken(), budget)
        listed = space.all_vectors(budget.samples)
        if listed is not None:
            found = optimizer.best_of(listed)
        else:
            candidates = space.allowed(
                global_candidates(
                    space, vectors[fit.good], budget.samples, self._rng, self._user_prior
                )
            )
            found = optimizer.best_from(candidates, whole_region(space), discrete=True)
        return self._random_vector() if found is None else found

    def _add(
        self,
        configuration: JsonValue,
        placed: Mapping[str, JsonValue],
        loss: tuple[float, ...],
    ) -> None:
        super()._add(configuration, placed, tuple(loss))  # a state has lists

    def _reset_model(self) -> None:
        self._models = self._new_models()
        self._user_prior = space_prior(self._space)

    def _model_state(self) -> JsonValue:
        return self._models.state()

    def _load_model_state(self, state: JsonValue) -> None:
        self._models.load_state(state)

    def _new_models(self) -> OutcomeModels:
        losses, limits = len(self._objectives.items), len(self._objectives.limits)
        return OutcomeModels(
            losses,
            losses + limits,
            self._settings.matern,
            self._settings.least_noise,
            self._space,
        )


def _excess(value: JsonValue, limit: OutcomeLimit) -> float:
    """Return by how much a report exceeds a limit, negative below; a huge number if missing."""
    number = scalar_metric(part_of(value, limit.metric))
    if number is None:
        return _GREATEST
    return min(max(number - limit.max, -_GREATEST), _GREATEST)
