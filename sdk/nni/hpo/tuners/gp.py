"""Bayesian optimisation with a Gaussian process.

Source: Bergstra, Bardenet, Bengio and Kegl, Algorithms for Hyper-Parameter Optimization, NIPS 2011,
section 3; Snoek, Larochelle and Adams, Practical Bayesian Optimization, NIPS 2012.

Departures:
- Every parameter has a length of its own, and the noise above `alpha` is learnt.
- Results are warped before they are modelled (see `_targets`), so that `xi` and the deviations that
  `kappa` weighs are in units of a typical spread of good results, not of the metric.
- Running trials count as if they had come out as predicted, so that requests at the same time get
  different points.
- The numbers of a choice stand in their order, evenly spaced.
- `selection_num_warm_up` and `selection_num_starting_points` are upper limits. What is done is
  counted, not timed, so that the same calls give the same answers on every machine; the counts are
  such that an ask takes about `ask_time_limit` on a core of 2020.
- Beyond a few hundred results the model is made of the best ones and a selection of the others.
"""

from typing import ClassVar, Final

import numpy as np

from nni.hpo.json_value import JsonValue
from nni.hpo.tuners._acquisition import (
    Acquisition,
    confidence_bound,
    expected_improvement,
    improvement_probability,
)
from nni.hpo.tuners._acquisition_search import best_point, candidates, search_effort
from nni.hpo.tuners._matern import Matern
from nni.hpo.tuners._model_based import ModelBasedTuner
from nni.hpo.tuners._parzen import Floats
from nni.hpo.tuners._surrogate import Surrogate
from nni.hpo.tuners._unit_cube import UnitCube
from nni.hpo.tuners.numeric_space import NUMERIC_TYPES, numeric_space
from nni.hpo.validation import ClassArgsValidator, check_whole

UTILITIES: Final = ("ei", "ucb", "poi")

_GOOD: Final = 5
"""Best results near which candidates are drawn."""


class GPTuner(ModelBasedTuner[UnitCube]):
    """Gaussian process regression and an acquisition function; for very expensive trials.

    Args:
        optimize_mode: `maximize` or `minimize`.
        utility: `ei` (expected improvement), `ucb` (confidence bound) or `poi` (probability of
            improvement).
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

    algorithm: ClassVar[str] = "GPTuner"

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
        super().__init__(optimize_mode, seed)
        self._acquisition = _acquisition(utility, kappa, xi)
        _check_range("alpha", alpha)
        check_whole("cold_start_num", cold_start_num, least=1)
        check_whole("selection_num_warm_up", selection_num_warm_up, least=1)
        check_whole("selection_num_starting_points", selection_num_starting_points, least=1)
        _check_range("ask_time_limit", ask_time_limit)
        self._cold_start = int(cold_start_num)
        self._most_samples = int(selection_num_warm_up)
        self._most_climbs = int(selection_num_starting_points)
        self._time_limit = float(ask_time_limit)
        self._surrogate = Surrogate(Matern.of(nu), float(alpha))

    def _cube_of(self, search_space: JsonValue) -> UnitCube:
        return UnitCube(numeric_space(search_space, self.algorithm, NUMERIC_TYPES))

    def _propose(self) -> Floats:
        if len(self._losses) < self._cold_start:
            return self._drawn()
        belief = self._surrogate.believe(self._points, self._losses)
        model = self._surrogate.expecting(belief, list(self._running.values()))
        effort = search_effort(
            len(belief.points), self._time_limit, self._most_samples, self._most_climbs
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
