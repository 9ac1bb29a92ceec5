"""The default tuner: chooses, from the space, the objectives and the results, how to search.

One loss is lowered by a Gaussian process and TPE, side by side (`blended_search`). With several
objectives, or limits on outcomes, every outcome has a process of its own (`outcome_search`).
"""

import logging
from dataclasses import replace
from typing import Annotated, ClassVar, Final

from nni.hpo.json_value import JsonValue
from nni.hpo.models.matern import Matern
from nni.hpo.objectives import Objectives, checked_optimize_mode, objectives_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import FloatRange
from nni.hpo.tuners._delegating import DelegatingTuner
from nni.hpo.tuners.bayesian.blended_search import BlendedSearch, counted
from nni.hpo.tuners.bayesian.outcome_search import OutcomeSearch
from nni.hpo.tuners.bayesian.process_settings import ProcessSettings

_logger = logging.getLogger(__name__)

_SMOOTHNESS: Final = 2.5
_OUTCOME_NOISE: Final = 1e-6
"""Least noise of outcomes; the process of a single loss has some of its own."""
_FIRST: Final = 10
"""Draws before outcomes are modelled."""
_MOST_SAMPLES: Final = 100_000
_MOST_CLIMBS: Final = 250


@algorithm(
    "auto",
    use_when="In general: the default for any space, one objective or several.",
    parallel="All are served; running trials count as if they had come out as predicted.",
    extra="hpo",
)
class AutoTuner(DelegatingTuner):
    """Chooses how to search by the space and the results; a good default for any space.

    Args:
        optimize_mode: `maximize` or `minimize`, where there is one objective.
        seed: of all draws; None for different ones in every process.
        ask_time_limit: seconds, >= 0, that bound the search for a point: what is done is counted,
            not timed, so that the same calls give the same answers on every machine.
    """

    multi_objective: ClassVar[bool] = True

    _search: "BlendedSearch | AutoOutcomes"

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        seed: Seed = None,
        ask_time_limit: Annotated[float, FloatRange(0, infinite=True)] = 0.05,
    ) -> None:
        self._seed = seed
        self._told = ""
        self._settings = ProcessSettings(
            Matern.of(_SMOOTHNESS),
            alpha=0.0,
            cold_start=_FIRST,
            most_samples=_MOST_SAMPLES,
            most_climbs=_MOST_CLIMBS,
            time_limit_s=float(ask_time_limit),
        )
        self.set_objectives(objectives_of(checked_optimize_mode(optimize_mode)))

    @property
    def explanation(self) -> str:
        """What was chosen for this space and these objectives, and why."""
        return self._search.explanation

    def set_objectives(self, objectives: Objectives) -> None:
        """See the base."""
        if objectives.several or objectives.limits:
            settings = replace(self._settings, alpha=_OUTCOME_NOISE)
            self._search = AutoOutcomes(objectives, settings, self._seed)
        else:
            self._search = BlendedSearch(objectives, self._settings, self._seed)

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base. Observations that are no points of the new space are dropped."""
        super().update_search_space(search_space)
        self._tell()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        configuration = super().generate_parameters(parameter_id, **kwargs)
        self._tell()
        return configuration

    def _tell(self) -> None:
        """Log what was chosen, when it is another way than before."""
        if self._told != self.explanation:
            self._told = self.explanation
            _logger.info("auto: %s", self._told)


class AutoOutcomes(OutcomeSearch):
    """The way with several objectives or limits on outcomes."""

    algorithm: ClassVar[str] = "auto"

    @property
    def explanation(self) -> str:
        """What was chosen, and why."""
        names = ", ".join(item.metric for item in self._objectives.items)
        limits = ", ".join(limit.metric for limit in self._objectives.limits)
        bounded = f" within limits of {limits}" if limits else ""
        return (
            f"{counted(len(self._cube))}, objectives {names}{bounded}: {_FIRST} draws, then a "
            "Gaussian process for each outcome; the next trial is where they expect the largest "
            "gain of the front, times the chance to keep the limits"
        )
