"""The default tuner: chooses, from the space, the objectives and the results, how to search.

One loss is lowered by a Gaussian process and TPE, side by side (`_blended_search`). With several
objectives, or limits on outcomes, every outcome has a process of its own (`_outcome_search`).
"""

import logging
from typing import ClassVar, Final

from nni.hpo.base import Tuner, checked_optimize_mode
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, objectives_of
from nni.hpo.tuners._blended_search import BlendedSearch
from nni.hpo.tuners._matern import Matern
from nni.hpo.tuners._outcome_search import OutcomeSearch, ProcessSettings
from nni.hpo.validation import ClassArgsValidator

_logger = logging.getLogger(__name__)

_SMOOTHNESS: Final = 2.5
_ALPHA: Final = 1e-6
_FIRST: Final = 10
"""Draws before outcomes are modelled."""
_MOST_SAMPLES: Final = 100_000
_MOST_CLIMBS: Final = 250


class AutoTuner(Tuner):
    """Chooses how to search by the space and the results; a good default for any space.

    Args:
        optimize_mode: `maximize` or `minimize`, where there is one objective.
        seed: of all draws; None for different ones in every process.
        ask_time_limit: seconds, >= 0, that bound the search for a point: what is done is counted,
            not timed, so that the same calls give the same answers on every machine.
    """

    multi_objective: ClassVar[bool] = True

    def __init__(
        self,
        optimize_mode: str = "maximize",
        seed: int | None = None,
        ask_time_limit: float = 0.05,
    ) -> None:
        ClassArgsValidator().range("ask_time_limit", float, 0, float("inf"))(ask_time_limit)
        self._seed = seed
        self._time_limit = float(ask_time_limit)
        self._search: BlendedSearch | AutoOutcomes
        self.set_objectives(objectives_of(checked_optimize_mode(optimize_mode)))

    @property
    def explanation(self) -> str:
        """What was chosen for this space and these objectives, and why."""
        return self._search.explanation

    def set_objectives(self, objectives: Objectives) -> None:
        """See the base."""
        if objectives.several or objectives.limits:
            self._search = AutoOutcomes(objectives, self._seed, self._time_limit)
        else:
            self._search = BlendedSearch(objectives, self._seed, self._time_limit)

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base. Observations that are no points of the new space are dropped."""
        self._search.update_search_space(search_space)
        _logger.info("auto: %s", self.explanation)

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


class AutoOutcomes(OutcomeSearch):
    """The way with several objectives or limits on outcomes.

    Args:
        objectives: several, or one within limits.
        seed: of all draws; None for different ones in every process.
        time_limit_s: see `AutoTuner`.
    """

    algorithm: ClassVar[str] = "auto"

    def __init__(self, objectives: Objectives, seed: int | None, time_limit_s: float) -> None:
        settings = ProcessSettings(
            Matern.of(_SMOOTHNESS),
            _ALPHA,
            cold_start=_FIRST,
            most_samples=_MOST_SAMPLES,
            most_climbs=_MOST_CLIMBS,
            time_limit_s=time_limit_s,
        )
        super().__init__(objectives, settings, seed)

    @property
    def explanation(self) -> str:
        """What was chosen, and why."""
        names = ", ".join(item.metric for item in self._objectives.items)
        limits = ", ".join(limit.metric for limit in self._objectives.limits)
        bounded = f" within limits of {limits}" if limits else ""
        return (
            f"{len(self._cube)} parameters, objectives {names}{bounded}: {_FIRST} draws, then a "
            "Gaussian process for each outcome; the next trial is where they expect the largest "
            "gain of the front, times the chance to keep the limits"
        )
