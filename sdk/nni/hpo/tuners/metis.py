"""Metis: the next configuration has the lowest confidence bound among a few candidates.

Every ask looks for the predicted optimum and for a configuration that would improve the model.

Source: Li et al., Metis: Robustly Optimizing Tail Latencies of Cloud Systems, USENIX ATC 2018,
section 3.

Departures:
- Of the predicted optimum, the exploring or exploiting candidate and an outlier to measure again,
  the one with the lowest confidence bound is proposed. Only outliers are measured again, and three
  times in all at most.
- Results are modelled on a scale that is learnt (see `targets`); running trials count as if they
  had come out as predicted.
- `selection_num_starting_points` is an upper limit of the candidates that the model is maximised
  from; work is counted, not timed, so that the same calls give the same proposals on every machine.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Annotated, ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import VectorKey, vector_key
from nni.hpo.encoding.numeric_space import METIS_TYPES, numeric_space
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gaussian_mixture import fitted_mixture
from nni.hpo.models.gp_model import FittedGP
from nni.hpo.models.gp_regression import GPPosterior, Kernel
from nni.hpo.models.loss_model import LossModel
from nni.hpo.models.matern import Matern
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import FloatRange, WholeNumber
from nni.hpo.tuners._model_based import ModelBasedTuner, loss_of_mode
from nni.hpo.tuners.bayesian.acquisition import (
    AcquisitionFunction,
    confidence_bound,
    posterior_deviation,
)
from nni.hpo.tuners.bayesian.acquisition_optimizer import (
    AcquisitionOptimizer,
    LossAcquisition,
    weighted_by_success,
)
from nni.hpo.tuners.bayesian.candidates import best_untaken, global_candidates, whole_region
from nni.hpo.tuners.bayesian.search_budget import search_budget

_NAME: Final = "MetisTuner"
_SMOOTHNESS: Final = 2.5
_LEAST_NOISE: Final = 1e-6
"""Noise variance, relative to the output scale."""
_GOOD: Final = 5
"""Best results near which candidates are drawn."""
_GOOD_SHARE: Final = 0.3
"""Share of the results whose density the exploiting candidate maximises."""
_BOUND: Final = 1.96
"""Standard deviations to either side that hold 95 % of a normal distribution."""
_MOST_MEASUREMENTS: Final = 3
"""Measurements of a configuration after which its mean is trusted."""
_SUGGESTED: Final = 500
"""Draws among which the exploiting candidate is chosen."""
_SHARE_OF_TIME: Final = 0.25
"""Share of the time for a maximisation: there are two, and an additive kernel takes twice the time
that is counted."""


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
class MetisTuner(ModelBasedTuner[float]):
    """Confidence bounds with mostly uncertainty sampling; for expensive trials.

    Args:
        optimize_mode: `maximize` or `minimize`.
        no_resampling: False to measure outliers again.
        no_candidates: True to propose the predicted optimum without looking for candidates.
        selection_num_starting_points: candidates that gradient ascent starts from, at most.
        cold_start_num: results before which configurations are random, >= 1; imported ones count.
        exploration_probability: in [0, 1]; probability to explore instead of exploiting.
        seed: of all draws; None for different ones in every process.
        ask_time_limit: seconds, >= 0, that bound the work per ask; see the departures.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-5, 5]}}
        >>> loss = lambda p: (p["x"] - 1) ** 2
        >>> found = optimize(loss, space, tuner="MetisTuner", trials=20, seed=0)
        >>> found.best_value < 0.1
        True
    """

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
        super().__init__(
            _NAME,
            partial(numeric_space, algorithm=_NAME, types=METIS_TYPES),
            loss_of_mode(optimize_mode),
            seed,
        )
        self._resampling = not no_resampling
        self._candidates = not no_candidates
        self._most_starts = int(selection_num_starting_points)
        self._cold_start = int(cold_start_num)
        self._exploration = float(exploration_probability)
        self._time_limit = float(ask_time_limit)
        self._model = self._new_model()

    def _propose(self) -> Floats:
        if len(self._losses) < self._cold_start:
            return self._random_vector()
        vectors, losses = self._measured()
        fitted = self._model.update(self._space.features(vectors), losses)
        vectors = vectors[fitted.kept]
        posterior = self._model.gp.with_pending(
            fitted, self._space.features(self._running_vectors())
        )
        found = self._new_candidates(vectors, fitted, posterior)
        if not found:
            return self._random_vector()
        means, deviations = posterior.predict(self._space.features(np.array(found)))
        bounds = means - _BOUND * deviations
        feasibility = self._feasibility()
        if feasibility is not None:
            bounds -= feasibility.log_weight(self._space.features(np.array(found)))
        outlier = _outlier(vectors, fitted, self._trusted_keys()) if self._resampling else None
        if outlier is not None and outlier.bound < bounds.min():
            return outlier.vector
        return found[int(np.argmin(bounds))]

    def _trusted_keys(self) -> set[VectorKey]:
        """Return keys of vectors that run, or were measured often enough."""
        counts = Counter(vector_key(vector) for vector in self._vectors)
        often = {key for key, count in counts.items() if count >= _MOST_MEASUREMENTS}
        return often | self._running_keys()

    def _measured(self) -> tuple[Floats, Floats]:
        """Return every vector with results `(n, d)` once, and the mean of its losses `(n,)`."""
        losses: dict[VectorKey, list[float]] = {}
        vectors: dict[VectorKey, Floats] = {}
        for vector, loss in zip(self._vectors, self._losses, strict=True):
            key = vector_key(vector)
            vectors.setdefault(key, vector)
            losses.setdefault(key, []).append(loss)
        return np.array(list(vectors.values())), np.array([fmean(own) for own in losses.values()])

    def _new_candidates(
        self, vectors: Floats, fitted: FittedGP, posterior: GPPosterior
    ) -> list[Floats]:
        """Return the predicted optimum, and the exploring or exploiting candidate.

        Args:
            vectors: `(n, d)`, of the modelled results.
            fitted: the model of them.
            posterior: of running trials, too.
        """
        space, taken = self._space, self._taken()
        budget = search_budget(
            len(vectors),
            _SHARE_OF_TIME * self._time_limit,
            self._most_starts,
            self._most_starts,
        )
        listed = space.all_vectors(budget.samples)
        order = np.argsort(fitted.targets, kind="stable")
        candidates = listed
        if candidates is None:
            good = vectors[order[:_GOOD]]
            candidates = space.allowed(global_candidates(space, good, budget.samples, self._rng))

        feasibility = self._feasibility()

        def best(function: AcquisitionFunction) -> Floats | None:
            plain = LossAcquisition(space, posterior, function, fitted.best_target)
            acquisition = weighted_by_success(space, plain, feasibility)
            optimizer = AcquisitionOptimizer(space, acquisition, taken, budget)
            if listed is not None:
                return optimizer.best_of(listed)
            return optimizer.best_from(candidates, whole_region(space), discrete=True)

        found = [best(confidence_bound(0.0))]
        if self._candidates:
            if self._rng.random() < self._exploration:
                found.append(best(posterior_deviation))
            else:
                found.append(self._exploiting_candidate(vectors[order], taken))
        return [vector for vector in found if vector is not None]

    def _exploiting_candidate(self, best_first: Floats, taken: set[VectorKey]) -> Floats | None:
        """Return the untaken draw of greatest good/bad density ratio; None if there is none."""
        count = len(best_first)
        split = min(max(2, math.ceil(_GOOD_SHARE * count)), count - 1)
        if split < 1:
            return None
        good = fitted_mixture(best_first[:split], self._rng)
        bad = fitted_mixture(best_first[split:], self._rng)
        drawn = self._space.snap(good.draw(self._rng, _SUGGESTED))
        ratio = good.log_density(drawn) - bad.log_density(drawn)
        feasibility = self._feasibility()
        if feasibility is not None:
            ratio += feasibility.log_weight(self._space.features(drawn))
        return best_untaken(self._space, drawn, ratio, taken)

    def _new_model(self) -> LossModel:
        return LossModel(Kernel(self._space.feature_axes, Matern.of(_SMOOTHNESS), _LEAST_NOISE))

    def _reset_model(self) -> None:
        self._model = self._new_model()

    def _model_state(self) -> JsonValue:
        return self._model.state()

    def _load_model_state(self, state: JsonValue) -> None:
        self._model.load_state(state)


@dataclass(frozen=True, slots=True)
class _Outlier:
    """Result outside the bounds of its leave-one-out prediction."""

    vector: Floats
    bound: float
    """Lower bound of its loss: below its result, or below the prediction."""


def _outlier(vectors: Floats, fitted: FittedGP, trusted: set[VectorKey]) -> _Outlier | None:
    """Return the untrusted result farthest outside the bounds of its prediction; None if none is.

    Args:
        vectors: `(n, d)`, of the modelled results.
        fitted: the model of them.
        trusted: keys of vectors that are not to be measured again.
    """
    means, deviations = fitted.posterior.gaussian.leave_one_out(fitted.targets)
    residuals = np.abs(fitted.targets - means) / deviations
    for index in np.argsort(-residuals, kind="stable"):
        if residuals[index] <= _BOUND:
            return None
        if vector_key(vectors[index]) not in trusted:
            lower = min(fitted.targets[index], means[index]) - _BOUND * deviations[index]
            return _Outlier(vectors[index], float(lower))
    return None
