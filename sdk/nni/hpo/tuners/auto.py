"""Default tuner: the search is chosen by the space, the objectives and the results.

One loss is minimised by a Gaussian process and TPE, side by side (`gp_search`). With several
objectives, or limits on outcomes, every outcome has a process of its own (`outcome_search`).
"""

import logging
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Final

from nni.hpo.json_value import JsonValue
from nni.hpo.models.matern import Matern
from nni.hpo.objectives import Objectives, checked_optimize_mode, objectives_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.cost_arguments import COST_AWARE, check_cost_arguments
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.outcome_arguments import ROBUST, check_single_outcome
from nni.hpo.registry.rules import FloatRange
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._delegating import DelegatingTuner
from nni.hpo.tuners.bayesian.acquisition import expected_improvement
from nni.hpo.tuners.bayesian.gp_search import LOCAL_SHARE, GPSearch
from nni.hpo.tuners.bayesian.initial_design import LatinHypercubeDesign
from nni.hpo.tuners.bayesian.outcome_search import OutcomeSearch
from nni.hpo.tuners.bayesian.search_budget import GPSettings
from nni.hpo.tuners.bayesian.tpe_proposer import TPEProposer

_logger = logging.getLogger(__name__)

_SMOOTHNESS: Final = 2.5
_OUTCOME_NOISE: Final = 1e-6
"""Least noise variance of outcomes, relative to the output scale."""
_COLD_START: Final = 10
"""Results before outcomes are modelled."""
_NAME: Final = "auto"
_MOST_SAMPLES: Final = 100_000
_MOST_CLIMBS: Final = 250


@algorithm(
    "auto",
    use_when="In general: the default for any space, one objective or several.",
    parallel="All are served; running trials count as if they had come out as predicted.",
    priors=True,
    argument_check=check_cost_arguments,
    extra="hpo",
)
class AutoTuner(DelegatingTuner):
    """Gaussian process and TPE side by side; a good default for any space.

    Args:
        optimize_mode: `maximize` or `minimize`, where there is one objective.
        seed: of all draws; None for different ones in every process.
        ask_time_limit: seconds, >= 0, that bound the work per ask: work is counted, not timed, so
            that the same calls give the same proposals on every machine.
        cost_aware: whether the run time of a trial is a cost: the acquisition function is divided
            by the predicted run time, to a power that falls as results come. For one objective.
        cost_budget: seconds, > 0, of run time of all trials together, at which that power is 0;
            None for a power that falls with the number of results.
        robust: whether noise may have heavy tails: a configuration with a suspiciously good result
            is measured again, and outliers are left out of the model. For one objective.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-5, 5]}}
        >>> found = optimize(lambda p: (p["x"] - 1) ** 2, space, tuner="auto", trials=20, seed=0)
        >>> found.best_value < 0.01
        True
    """

    multi_objective: ClassVar[bool] = True
    imports_failures: ClassVar[bool] = True
    learns_stopped: ClassVar[bool] = True

    _search: GPSearch | OutcomeSearch

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        seed: Seed = None,
        ask_time_limit: Annotated[float, FloatRange(0, infinite=True)] = 0.05,
        cost_aware: bool = False,  # noqa: FBT001, FBT002 - an argument of configurations
        cost_budget: Annotated[float | None, FloatRange(0, open_low=True)] = None,
        robust: bool = False,  # noqa: FBT001, FBT002 - an argument of configurations
    ) -> None:
        self._seed = seed
        self._logged = ""
        self._settings = GPSettings(
            Matern.of(_SMOOTHNESS),
            least_noise=0.0,
            cold_start=_COLD_START,
            most_samples=_MOST_SAMPLES,
            most_climbs=_MOST_CLIMBS,
            time_limit_s=float(ask_time_limit),
            cost_aware=cost_aware,
            cost_budget_s=cost_budget,
            robust=robust,
        )
        self.set_objectives(objectives_of(checked_optimize_mode(optimize_mode)))

    @property
    def explanation(self) -> str:
        """Description of the method chosen for this space and these objectives, with the reason."""
        if isinstance(self._search, GPSearch):
            return loss_explanation(self._search)
        return outcome_explanation(len(self._search.space), self._objectives)

    def set_objectives(self, objectives: Objectives) -> None:
        """Set the objectives, and choose the search for one loss or for several outcomes."""
        self._objectives = objectives
        several = objectives.several or bool(objectives.limits)
        single = {COST_AWARE: self._settings.cost_aware, ROBUST: self._settings.robust}
        check_single_outcome(single, several_outcomes=several)
        if several:
            settings = replace(self._settings, least_noise=_OUTCOME_NOISE)
            self._search = OutcomeSearch(_NAME, objectives, settings, self._seed)
        else:
            self._search = loss_search(objectives, self._settings, self._seed)

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the space, dropping observations outside it; log the explanation if it changed."""
        super().update_search_space(search_space)
        self._log_explanation()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return the chosen search's configuration; log the explanation if it changed."""
        configuration = super().generate_parameters(parameter_id, **kwargs)
        self._log_explanation()
        return configuration

    def _log_explanation(self) -> None:
        """Log the explanation when it has changed."""
        if self._logged != self.explanation:
            self._logged = self.explanation
            _logger.info("auto: %s", self._logged)


def loss_search(objectives: Objectives, settings: GPSettings, seed: int | None) -> GPSearch:
    """Return a GP search with a Latin hypercube and TPE, as `auto` uses for one loss.

    Args:
        objectives: the only one.
        settings: of the process and the search; its cold start is not used.
        seed: of all draws; None for different ones in every process.
    """
    return GPSearch(
        _NAME,
        partial(parse_space, algorithm=_NAME),
        objectives,
        expected_improvement(0.0),
        settings,
        design=LatinHypercubeDesign(),
        tpe=TPEProposer(seed),
        seed=seed,
    )


def loss_explanation(search: GPSearch) -> str:
    """Return text that explains the search for one loss: space, methods and findings."""
    kind = "with branches" if search.space.has_branches else "without branches"
    text = (
        f"{_counted(len(search.space))} {kind}: {search.design_size} points spread over the "
        f"space, then TPE for {search.tpe_share:.0%} of the trials and a Gaussian process for "
        f"the others, {LOCAL_SHARE:.0%} of them near the best point"
    )
    if search.scale:
        text += "; good results are compared by the logarithm of their distance from the best"
    if search.space.search_space.has_priors:
        text += "; the first trials follow the user priors, later ones less with each result"
    if search.learns_durations:
        text += "; proposals are weighed by the predicted run time, less with each result"
    if search.is_robust:
        text += "; suspiciously good points are measured again, and outliers left out"
    if search.has_plateaus:
        text += "; points on the plateau of a known one are passed over"
    return text


def outcome_explanation(parameters: int, objectives: Objectives) -> str:
    """Return text that explains how several objectives or limits are searched.

    Args:
        parameters: number of them.
        objectives: with their limits.
    """
    names = ", ".join(item.metric for item in objectives.items)
    limits = ", ".join(limit.metric for limit in objectives.limits)
    bounded = f" within limits of {limits}" if limits else ""
    return (
        f"{_counted(parameters)}, objectives {names}{bounded}: {_COLD_START} draws, then a "
        "Gaussian process for each outcome; the next trial is where they expect the largest "
        "gain of the front, times the chance to keep the limits"
    )


def _counted(parameters: int) -> str:
    """Return the number of parameters, in words."""
    return "1 parameter" if parameters == 1 else f"{parameters} parameters"
