"""Bayesian optimisation with a Gaussian process.

Source: Bergstra, Bardenet, Bengio and Kegl, Algorithms for Hyper-Parameter Optimization, NIPS 2011,
section 3; Snoek, Larochelle and Adams, Practical Bayesian Optimization, NIPS 2012.

Departures:
- Every parameter has a lengthscale of its own, and the noise variance above `alpha` is fitted. The
  kernel is partly additive, by a share that is fitted as well; see `gp_regression`.
- Three proposals in five lie in a trust region around the best configuration, the others anywhere;
  when nothing is gained any more some look for marked improvements only. See `gp_search`.
- Results are modelled on a scale that is learnt, from linear to logarithmic; the worse half is
  warped as a rule (see `targets`). So `xi` and the deviations that `kappa` weighs are in units of a
  typical spread of results, not of the metric.
- Running trials count as if they had come out as predicted, so that concurrent trials get different
  configurations.
- The numbers of a choice stand in their order, evenly spaced; two numbers just differ.
- `selection_num_warm_up` and `selection_num_starting_points` are upper limits. Work is counted, not
  timed, so that the same calls give the same proposals on every machine; the counts are such that
  an ask takes about `ask_time_limit` on a core of 2020.
- Beyond a few hundred results the model is conditioned on the best ones and a selection of the
  others.
- With `robust`, a suspiciously good configuration is measured again, and outliers by a Student-t
  likelihood are left out of the process; see `outliers`.
- Several objectives, and limits on outcomes, have a Gaussian process each; see `outcome_models`.
"""

from functools import partial
from typing import Annotated, ClassVar, Final

from nni.hpo.encoding.numeric_space import NUMERIC_TYPES, numeric_space
from nni.hpo.models.matern import Matern
from nni.hpo.objectives import Objectives, checked_optimize_mode, objectives_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.cost_arguments import COST_AWARE, check_cost_arguments
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.outcome_arguments import ROBUST, check_single_outcome
from nni.hpo.registry.rules import FloatRange, OneOf, WholeNumber
from nni.hpo.tuners._delegating import DelegatingTuner
from nni.hpo.tuners.bayesian.acquisition import (
    AcquisitionFunction,
    confidence_bound,
    expected_improvement,
    probability_of_improvement,
)
from nni.hpo.tuners.bayesian.gp_search import GPSearch
from nni.hpo.tuners.bayesian.initial_design import RandomDesign
from nni.hpo.tuners.bayesian.outcome_search import OutcomeSearch
from nni.hpo.tuners.bayesian.search_budget import GPSettings

UTILITIES: Final = ("ei", "ucb", "poi")

_SHARE_OF_TIME: Final = 0.5
"""An additive kernel takes twice the time that `search_budget` counts for a candidate."""
_NAME: Final = "GPTuner"


@algorithm(
    "GPTuner",
    use_when="Very expensive trials, few of them, and numeric parameters.",
    parallel="Served one by one; running trials count as if they had come out as predicted.",
    documented_as="nni.algorithms.hpo.gp_tuner.GPTuner",
    types=NUMERIC_TYPES,
    nested=False,
    space_check="nni.hpo.encoding.numeric_space:check_gp_space",
    any_space_with_outcomes=True,
    priors=True,
    argument_check=check_cost_arguments,
    extra="hpo",
)
class GPTuner(DelegatingTuner):
    """Gaussian process regression and an acquisition function; for very expensive trials.

    Spaces are flat and of numbers; with several objectives, or limits on outcomes, of any types,
    nested ones included.

    Args:
        optimize_mode: `maximize` or `minimize`.
        utility: `ei` (expected improvement), `ucb` (confidence bound) or `poi` (probability of
            improvement). With several objectives, or limits on outcomes, it is the expected
            hypervolume improvement within the limits.
        kappa: weight of the standard deviation in `ucb`, >= 0; larger explores more.
        xi: margin in `ei` and `poi`, >= 0, in standard deviations of the warped results.
        nu: smoothness of the Matern correlation, > 0; smaller is rougher.
        alpha: noise variance added to the diagonal, >= 0, relative to the output scale.
        cold_start_num: results before which configurations are random, >= 1.
        selection_num_warm_up: candidates evaluated per ask, at most.
        selection_num_starting_points: candidates that gradient ascent starts from, at most.
        seed: of all draws; None for different ones in every process.
        ask_time_limit: seconds, >= 0, that bound the work per ask; see the departures.
        cost_aware: whether the run time of a trial is a cost: `ei` or `poi` is divided by the
            predicted run time, to a power that falls as results come. For one objective.
        cost_budget: seconds, > 0, of run time of all trials together, at which that power is 0;
            None for a power that falls with the number of results.
        robust: whether noise may have heavy tails: a configuration with a suspiciously good result
            is measured again, and outliers are left out of the model. For one objective.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-5, 5]}}
        >>> found = optimize(lambda p: (p["x"] - 1) ** 2, space, tuner="GPTuner", trials=20, seed=0)
        >>> found.best_value < 0.01
        True
    """

    multi_objective: ClassVar[bool] = True
    imports_failures: ClassVar[bool] = True
    learns_stopped: ClassVar[bool] = True

    _search: GPSearch | OutcomeSearch

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        optimize_mode: Mode = "maximize",
        utility: Annotated[str, OneOf(*UTILITIES)] = "ei",
        kappa: Annotated[float, FloatRange(0)] = 5,
        xi: Annotated[float, FloatRange(0)] = 0,
        nu: Annotated[float, FloatRange(0, open_low=True, infinite=True)] = 2.5,
        alpha: Annotated[float, FloatRange(0)] = 1e-6,
        cold_start_num: Annotated[int, WholeNumber(1)] = 10,
        selection_num_warm_up: Annotated[int, WholeNumber(1)] = 100_000,
        selection_num_starting_points: Annotated[int, WholeNumber(1)] = 250,
        seed: Seed = None,
        ask_time_limit: Annotated[float, FloatRange(0, infinite=True)] = 0.1,
        cost_aware: bool = False,  # noqa: FBT001, FBT002 - an argument of configurations
        cost_budget: Annotated[float | None, FloatRange(0, open_low=True)] = None,
        robust: bool = False,  # noqa: FBT001, FBT002 - an argument of configurations
    ) -> None:
        self._settings = GPSettings(
            Matern.of(nu),
            float(alpha),
            cold_start=int(cold_start_num),
            most_samples=int(selection_num_warm_up),
            most_climbs=int(selection_num_starting_points),
            time_limit_s=_SHARE_OF_TIME * float(ask_time_limit),
            cost_aware=cost_aware,
            cost_budget_s=cost_budget,
            robust=robust,
        )
        self._utility = _acquisition(utility, kappa, xi)
        self._seed = seed
        self.set_objectives(objectives_of(checked_optimize_mode(optimize_mode)))

    def set_objectives(self, objectives: Objectives) -> None:
        """Choose the search: for several outcomes or limits, or for one loss."""
        several = objectives.several or bool(objectives.limits)
        single = {COST_AWARE: self._settings.cost_aware, ROBUST: self._settings.robust}
        check_single_outcome(single, several_outcomes=several)
        if several:
            self._search = OutcomeSearch(_NAME, objectives, self._settings, self._seed)
        else:
            self._search = GPSearch(
                _NAME,
                partial(numeric_space, algorithm=_NAME, types=NUMERIC_TYPES, priors=True),
                objectives,
                self._utility,
                self._settings,
                design=RandomDesign(self._settings.cold_start),
                seed=self._seed,
            )


def _acquisition(utility: str, kappa: float, xi: float) -> AcquisitionFunction:
    """Return the acquisition function `ei`, `poi`, or the confidence bound for any other name."""
    if utility == "ei":
        return expected_improvement(float(xi))
    if utility == "poi":
        return probability_of_improvement(float(xi))
    return confidence_bound(float(kappa))
