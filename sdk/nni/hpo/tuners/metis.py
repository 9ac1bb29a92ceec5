"""Metis: every ask predicts where the optimum is, and where to measure next to know better.

Source: Li et al., Metis: Robustly Optimizing Tail Latencies of Cloud Systems, USENIX ATC 2018,
section 3.

Departures:
- Of the predicted optimum, the chosen candidate and a point to measure again, the one with the
  lowest lower confidence bound is proposed. Only incredible results are measured again, and three
  times in all at most.
- Results are warped before they are modelled (see `targets`); running trials count as if they had
  come out as predicted.
- `selection_num_starting_points` is an upper limit of the points from which the model is searched;
  what is done is counted, not timed, so that the same calls give the same answers on every machine.
"""

import math
from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.numeric_space import METIS_TYPES, numeric_space
from nni.hpo.encoding.unit_cube import PointKey, UnitCube, best_free, point_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gaussian_mixture import fitted_mixture
from nni.hpo.models.gaussian_process import Posterior
from nni.hpo.models.gp_model import Belief
from nni.hpo.models.matern import Matern
from nni.hpo.models.surrogate import Surrogate
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import FloatRange, WholeNumber
from nni.hpo.registry.validation import ClassArgsValidator, check_whole
from nni.hpo.tuners._model_based import ModelBasedTuner
from nni.hpo.tuners.bayesian.acquisition import confidence_bound, deviation_alone
from nni.hpo.tuners.bayesian.acquisition_search import Effort, best_point, candidates, search_effort

_SMOOTHNESS: Final = 2.5
_LEAST_NOISE: Final = 1e-6
_GOOD: Final = 5
"""Best results near which candidates are drawn."""
_GOOD_SHARE: Final = 0.3
"""Share of the results whose density the exploiting candidate looks for."""
_BOUND: Final = 1.96
"""Deviations to either side that hold 95 % of a normal distribution."""
_MOST_MEASUREMENTS: Final = 3
"""Of one point, after which its result is believed."""
_SUGGESTED: Final = 500
"""Points among which the exploiting candidate is looked for."""


@algorithm(
    "MetisTuner",
    use_when="Expensive trials, noisy results, and numeric parameters.",
    parallel="Served one by one; running trials count as if they had come out as predicted.",
    documented_as="nni.algorithms.hpo.metis_tuner.MetisTuner",
    types=METIS_TYPES,
    nested=False,
    space_check="nni.hpo.encoding.numeric_space:check_metis_space",
    extra="hpo",
)
class MetisTuner(ModelBasedTuner[UnitCube]):
    """Explores where the model knows least, most of the time; for expensive trials.

    Args:
        optimize_mode: `maximize` or `minimize`.
        no_resampling: False to measure a point again whose result the model cannot believe.
        no_candidates: True to propose the predicted optimum without looking for candidates.
        selection_num_starting_points: points from which the optimum is looked for, at most.
        cold_start_num: results before which points are random, >= 1; imported ones count.
        exploration_probability: in [0, 1]; chance to explore instead of exploiting.
        seed: of all draws; None for different ones in every process.
        ask_time_limit: seconds, >= 0, that bound the search for a point; see the departures.
    """

    algorithm: ClassVar[str] = "MetisTuner"
    prepares: ClassVar[bool] = True

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        no_resampling: bool = True,  # noqa: FBT001, FBT002 - documented signature
        no_candidates: bool = False,  # noqa: FBT001, FBT002 - documented signature
        selection_num_starting_points: Annotated[int, WholeNumber(1)] = 600,
        cold_start_num: Annotated[int, WholeNumber(1)] = 10,
        exploration_probability: Annotated[float, FloatRange(0, 1)] = 0.9,
        seed: Seed = None,
        ask_time_limit: Annotated[float, FloatRange(0, infinite=True)] = 0.1,
    ) -> None:
        super().__init__(optimize_mode, seed)
        check_whole("selection_num_starting_points", selection_num_starting_points, least=1)
        check_whole("cold_start_num", cold_start_num, least=1)
        checks = ClassArgsValidator()
        checks.range("exploration_probability", float, 0, 1)(exploration_probability)
        checks.range("ask_time_limit", float, 0, math.inf)(ask_time_limit)
        self._resampling = not no_resampling
        self._candidates = not no_candidates
        self._most_starts = int(selection_num_starting_points)
        self._cold_start = int(cold_start_num)
        self._exploration = float(exploration_probability)
        self._time_limit = float(ask_time_limit)
        self._surrogate = Surrogate(Matern.of(_SMOOTHNESS), _LEAST_NOISE)

    def _cube_of(self, search_space: JsonValue) -> UnitCube:
        return UnitCube(numeric_space(search_space, self.algorithm, METIS_TYPES))

    def _propose(self) -> Floats:
        if len(self._losses) < self._cold_start:
            return self._drawn()
        points, losses = self._measured()
        belief = self._surrogate.believe(points, losses)
        model = self._surrogate.expecting(belief, list(self._running.values()))
        found = self._worth_measuring(belief, model)
        if not found:
            return self._drawn()
        means, deviations = model.predict(np.array(found))
        bounds = means - _BOUND * deviations
        again = _doubtful(belief, self._settled_keys()) if self._resampling else None
        if again is not None and again.bound < bounds.min():
            return again.point
        return found[int(np.argmin(bounds))]

    def _settled_keys(self) -> set[PointKey]:
        """Return the points that are not to be measured again."""
        counts = Counter(point_key(point) for point in self._points)
        often = {key for key, count in counts.items() if count >= _MOST_MEASUREMENTS}
        return often | self._running_keys()

    def _measured(self) -> tuple[list[Floats], list[float]]:
        """Return every point that has results, once, and the mean of its losses."""
        losses: dict[PointKey, list[float]] = {}
        points: dict[PointKey, Floats] = {}
        for point, loss in zip(self._points, self._losses, strict=True):
            key = point_key(point)
            points.setdefault(key, point)
            losses.setdefault(key, []).append(loss)
        return list(points.values()), [fmean(same) for same in losses.values()]

    def _worth_measuring(self, belief: Belief[Posterior], model: Posterior) -> list[Floats]:
        """Return the new points between which the lower confidence bound decides."""
        taken = self._running_keys() | self._observed_keys()
        effort = search_effort(
            len(belief.points), self._time_limit / 2, self._most_starts, self._most_starts
        )
        good = belief.points[np.argsort(belief.targets, kind="stable")[:_GOOD]]
        rated = candidates(self._cube, good, effort.samples, self._rng)
        lowest = confidence_bound(0.0)
        found = [best_point(self._cube, model, lowest, belief.best, rated, taken, effort)]
        if self._candidates:
            if self._rng.random() < self._exploration:
                found.append(self._unknown(model, rated, taken, effort))
            else:
                found.append(self._promising(belief, taken))
        return [point for point in found if point is not None]

    def _unknown(
        self, model: Posterior, rated: Floats, taken: set[PointKey], effort: Effort
    ) -> Floats | None:
        """Return the point with the widest confidence interval."""
        return best_point(self._cube, model, deviation_alone, 0.0, rated, taken, effort)

    def _promising(self, belief: Belief[Posterior], taken: set[PointKey]) -> Floats | None:
        """Return the point that is most like good results and least like bad ones."""
        order = np.argsort(belief.targets, kind="stable")
        split = min(max(2, math.ceil(_GOOD_SHARE * len(order))), len(order) - 1)
        if split < 1:
            return None
        good = fitted_mixture(belief.points[order[:split]], self._rng)
        bad = fitted_mixture(belief.points[order[split:]], self._rng)
        points = self._cube.snap(good.draw(self._rng, _SUGGESTED))
        ratio = good.log_density(points) - bad.log_density(points)
        return best_free(self._cube, points, ratio, taken)

    def _forget_model(self) -> None:
        self._surrogate.forget()

    def _model_state(self) -> JsonValue:
        return self._surrogate.state()

    def _load_model_state(self, state: JsonValue) -> None:
        self._surrogate.load_state(state)


@dataclass(frozen=True, slots=True)
class _Doubtful:
    """A result that the model without it finds incredible."""

    point: Floats
    bound: float
    """How low its loss may be: below its result, or below what the model without it predicts."""


def _doubtful(belief: Belief[Posterior], settled: set[PointKey]) -> _Doubtful | None:
    """Return the least credible result, if it lies beyond the bounds of the prediction.

    Args:
        belief: with the results in question.
        settled: points that are not to be measured again.
    """
    means, deviations = belief.model.left_out(belief.targets)
    surprise = np.abs(belief.targets - means) / deviations
    for index in np.argsort(-surprise, kind="stable"):
        if surprise[index] <= _BOUND:
            return None
        point = belief.points[index]
        if point_key(point) not in settled:
            lower = min(belief.targets[index], means[index]) - _BOUND * deviations[index]
            return _Doubtful(point, float(lower))
    return None
