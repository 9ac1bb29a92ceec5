"""Bayesian optimisation with a Gaussian process.

Source: Bergstra, Bardenet, Bengio and Kegl, Algorithms for Hyper-Parameter Optimization, NIPS 2011,
section 3; Snoek, Larochelle and Adams, Practical Bayesian Optimization, NIPS 2012.

Departures:
- Every parameter has a length of its own, and the noise above `alpha` is learnt.
- Every other ask takes the lengths for shorter than was learnt, since lengths that are too long
  leave whole hollows out: Berkenkamp, Schoellig and Krause, No-Regret Bayesian Optimization with
  Unknown Hyperparameters, JMLR 20, 2019.
- Results are warped before they are modelled (see `_targets`), so that `xi` and the deviations that
  `kappa` weighs are in units of a typical spread of good results, not of the metric.
- Running trials count as if they had come out as predicted, so that requests at the same time get
  different points.
- The numbers of a choice stand in their order, evenly spaced.
- `selection_num_warm_up` and `selection_num_starting_points` are upper limits. What is done is
  counted, not timed, so that the same calls give the same answers on every machine; the counts are
  such that an ask takes about `ask_time_limit` on a core of 2020.
- Beyond a few hundred results the model is made of the best ones and a selection of the others.
- Several objectives, and limits on outcomes, have a process each; see `_outcome_models`.
"""

from typing import ClassVar, Final

import numpy as np

from nni.hpo.base import Tuner, checked_optimize_mode
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, objectives_of
from nni.hpo.tuners._acquisition import (
    Acquisition,
    confidence_bound,
    expected_improvement,
    improvement_probability,
)
from nni.hpo.tuners._acquisition_search import best_point, candidates, search_effort
from nni.hpo.tuners._matern import Matern
from nni.hpo.tuners._model_based import PointTuner
from nni.hpo.tuners._outcome_search import OutcomeSearch, ProcessSettings
from nni.hpo.tuners._parzen import Floats
from nni.hpo.tuners._surrogate import Surrogate
from nni.hpo.tuners._unit_cube import UnitCube
from nni.hpo.tuners.numeric_space import NUMERIC_TYPES, numeric_space
from nni.hpo.validation import ClassArgsValidator, check_whole

UTILITIES: Final = ("ei", "ucb", "poi")

_GOOD: Final = 5
"""Best results near which candidates are drawn."""
_DOUBTED: Final = 2
"""Every how many asks the lengths that were learnt are doubted ..."""
_SHRINKAGE: Final = 0.5
"""... and multiplied by this."""


class GPTuner(Tuner):
    """Gaussian process regression and an acquisition function; for very expensive trials.

    Spaces are flat and of numbers; with several objectives, or limits on outcomes, of any types,
    nested ones included.

    Args:
        optimize_mode: `maximize` or `minimize`.
        utility: `ei` (expected improvement), `ucb` (confidence bound) or `poi` (probability of
            improvement). With several objectives, or limits on outcomes, it is the volume that a
            result is expected to add to what the others dominate, within the limits.
        kappa: weight of the deviation in `ucb`, >= 0; larger explores more.
        xi: margin in `ei` and `poi`, >= 0, in deviations of the warped results.
        nu: smoothness of the Matern correlation, > 0; smaller is rougher.
        alpha: noise added to the diagonal, >= 0, relative to the variance of the process.
        cold_start_num: results before which points are random, >= 1.
        selection_num_warm_up: points rated per ask, at most.
        selection_num_starting_points: climbs per ask, at most.
        seed: of all draws; None for different ones in every process.
        ask_time_limit: seconds, >= 0, that bound the search for a point; see the departures.
    """

    multi_objective: ClassVar[bool] = True

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        optimize_mode: str = "maximize",
        utility: str = "ei",
        kappa: float = 5,
        xi: float = 0,
        nu: float = 2.5,
        alpha: float = 1e-6,
        cold_start_num: int = 10,
        selection_num_warm_up: int = 100_000,
        selection_num_starting_points: int = 250,
        seed: int | None = None,
        ask_time_limit: float = 0.1,
    ) -> None:
        _check_range("alpha", alpha)
        check_whole("cold_start_num", cold_start_num, least=1)
        check_whole("selection_num_warm_up", selection_num_warm_up, least=1)
        check_whole("selection_num_starting_points", selection_num_starting_points, least=1)
        _check_range("ask_time_limit", ask_time_limit)
        self._settings = ProcessSettings(
            Matern.of(nu),
            float(alpha),
            cold_start=int(cold_start_num),
            most_samples=int(selection_num_warm_up),
            most_climbs=int(selection_num_starting_points),
            time_limit_s=float(ask_time_limit),
        )
        self._utility = _acquisition(utility, kappa, xi)
        self._seed = seed
        self._search: LossSearch | OutcomeSearch
        self.set_objectives(objectives_of(checked_optimize_mode(optimize_mode)))

    def set_objectives(self, objectives: Objectives) -> None:
        """See the base."""
        if objectives.several or objectives.limits:
            self._search = OutcomeSearch(objectives, self._settings, self._seed)
        else:
            self._search = LossSearch(objectives, self._utility, self._settings, self._seed)

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base. Observations that are no points of the new space are dropped."""
        self._search.update_search_space(search_space)

    def prepare_parameters(self) -> None:
        """See the base."""
        self._search.prepare_parameters()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        return self._search.generate_parameters(parameter_id, **kwargs)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """See the base."""
        self._search.receive_trial_result(parameter_id, parameters, value, **kwargs)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """See the base."""
        self._search.trial_end(parameter_id, success, **kwargs)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """See the base. Samples outside the space or without finite values are skipped."""
        self._search.import_data(data)

    def state(self) -> dict[str, JsonValue]:
        """Return what `load_state` needs to go on from here, as JSON."""
        return self._search.state()

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Go on from a state of a tuner that was built and given its space alike."""
        self._search.load_state(state)


class LossSearch(PointTuner[UnitCube, float]):
    """Lowers one loss, in flat spaces of numbers.

    Args:
        objectives: one of them, without limits.
        acquisition: what is maximised.
        settings: of the process and the search.
        seed: of all draws; None for different ones in every process.
    """

    algorithm: ClassVar[str] = "GPTuner"
    prepares: ClassVar[bool] = True

    def __init__(
        self,
        objectives: Objectives,
        acquisition: Acquisition,
        settings: ProcessSettings,
        seed: int | None,
    ) -> None:
        super().__init__(seed)
        self._objectives = objectives
        self._acquisition = acquisition
        self._settings = settings
        self._surrogate = Surrogate(settings.kernel, settings.alpha)

    def _cube_of(self, search_space: JsonValue) -> UnitCube:
        return UnitCube(numeric_space(search_space, self.algorithm, NUMERIC_TYPES))

    def _loss_of(self, value: JsonValue) -> float | None:
        losses = self._objectives.losses(value)
        return None if losses is None else losses[0]

    def _propose(self) -> Floats:
        settings = self._settings
        if len(self._losses) < settings.cold_start:
            return self._drawn()
        shrinkage = 1.0 if (len(self._losses) + len(self._running)) % _DOUBTED else _SHRINKAGE
        belief = self._surrogate.believe(self._points, self._losses, shrinkage=shrinkage)
        model = self._surrogate.expecting(belief, list(self._running.values()))
        effort = search_effort(
            len(belief.points), settings.time_limit_s, settings.most_samples, settings.most_climbs
        )
        good = belief.points[np.argsort(belief.targets, kind="stable")[:_GOOD]]
        rated = candidates(self._cube, good, effort.samples, self._rng)
        taken = self._running_keys() | self._observed_keys()
        point = best_point(self._cube, model, self._acquisition, belief.best, rated, taken, effort)
        return self._drawn() if point is None else point

    def _forget_model(self) -> None:
        self._surrogate.forget()

    def _model_state(self) -> JsonValue:
        return self._surrogate.state()

    def _load_model_state(self, state: JsonValue) -> None:
        self._surrogate.load_state(state)


def _acquisition(utility: str, kappa: float, xi: float) -> Acquisition:
    _check_range("kappa", kappa)
    _check_range("xi", xi)
    if utility == "ei":
        return expected_improvement(float(xi))
    if utility == "poi":
        return improvement_probability(float(xi))
    if utility == "ucb":
        return confidence_bound(float(kappa))
    raise ValueError(f"utility must be one of {', '.join(UTILITIES)}; got {utility!r}")


def _check_range(name: str, value: object) -> None:
    ClassArgsValidator().range(name, float, 0, float("inf"))(value)
