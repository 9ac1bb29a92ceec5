"""Run times of the trials of a cost-aware search, from which the cost of a new trial is predicted.

Run times come with the ends of trials, which follow their results. The model learns those of
completed trials; of the budget the others take their part as well.
"""

import math
from collections.abc import Iterable
from typing import Final, TypeGuard

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.json_value import JsonValue
from nni.hpo.models.cost_model import CostModel, CostPrediction, cost_exponent


class TrialCosts:
    """Run times of trials in one search space, with the model that predicts them.

    Args:
        space: of the configurations.
        budget_s: see `cost_exponent`.
    """

    def __init__(self, space: EncodedSpace, budget_s: float | None) -> None:
        self.budget_s: Final = budget_s
        self._space = space
        self._model = CostModel(space.feature_axes)
        self._spent_s = 0.0
        self._vectors: list[Floats] = []
        self._durations_s: list[float] = []
        self._measured: list[tuple[JsonValue, float]] = []
        """Configurations and run times, those outside the present space included."""
        self._completed: dict[int, JsonValue] = {}
        """Configurations of the trials with a result whose end is not known, by id."""

    @property
    def known(self) -> int:
        """Number of the run times that are modelled."""
        return len(self._durations_s)

    def complete(self, parameter_id: int, configuration: JsonValue) -> None:
        """Remember the configuration of a trial that has a result, until it ends."""
        self._completed[parameter_id] = dict(configuration)

    def end(self, parameter_id: int, duration_s: object, *, success: bool) -> None:
        """Add an ended trial's run time to those spent; model it if a result and success.

        Args:
            parameter_id: of the trial.
            duration_s: a number > 0; anything else is an unknown run time.
            success: whether it has completed; the run time of another one is spent, but says
                nothing about the cost of its configuration.
        """
        configuration = self._completed.pop(parameter_id, None)
        if not is_duration(duration_s):
            return
        if success and configuration is not None:
            self.learn(configuration, float(duration_s))
        else:
            self._spent_s += float(duration_s)

    def learn(self, configuration: JsonValue, duration_s: float) -> None:
        """Add a completed trial's run time to those spent and, inside the space, to the model.

        Args:
            configuration: of the trial; one outside the space is not modelled.
            duration_s: > 0.
        """
        self._spent_s += duration_s
        self._measured.append((dict(configuration), duration_s))
        self._add(configuration, duration_s)

    def learn_all(self, durations: Iterable[dict[str, JsonValue]]) -> None:
        """Add run times as `Tuner.import_durations` gets them; skip those that are none."""
        for item in durations:
            if is_duration(item["duration_s"]):
                self.learn(item["parameter"], float(item["duration_s"]))

    def prediction(self, results: int) -> CostPrediction | None:
        """Return the predicted cost; None while it is not known, or once it does not count.

        Args:
            results: number of results that the search knows.
        """
        exponent = cost_exponent(results, self._spent_s, self.budget_s)
        if not self._vectors:
            return None
        features = self._space.features(np.array(self._vectors))
        return self._model.predict(features, np.array(self._durations_s), exponent)

    def moved_to(self, space: EncodedSpace) -> "TrialCosts":
        """Return a copy for another space; run times outside of it are kept, but not modelled."""
        moved = TrialCosts(space, self.budget_s)
        moved._spent_s = self._spent_s
        moved._completed = dict(self._completed)
        moved._measured = list(self._measured)
        for configuration, duration_s in self._measured:
            moved._add(configuration, duration_s)
        return moved

    def state(self) -> JsonValue:
        """Return the run times as JSON, for `load_state`; without the model."""
        return {
            "spent_s": self._spent_s,
            "measured": [[configuration, seconds] for configuration, seconds in self._measured],
            "completed": [[number, one] for number, one in self._completed.items()],
        }

    def load_state(self, state: JsonValue) -> None:
        """Replace all run times by those of a state."""
        self._spent_s = float(state["spent_s"])
        self._measured, self._vectors, self._durations_s = [], [], []
        for configuration, duration_s in state["measured"]:
            self._measured.append((configuration, float(duration_s)))
            self._add(configuration, float(duration_s))
        self._completed = {int(number): one for number, one in state["completed"]}

    def model_state(self) -> JsonValue:
        """Return the state of the model, the run times excepted, as JSON."""
        return self._model.state()

    def load_model_state(self, state: JsonValue) -> None:
        """Restore the state that `model_state` returned."""
        self._model.load_state(state)

    def _add(self, configuration: JsonValue, duration_s: float) -> None:
        try:
            vector = self._space.encode(configuration)
        except ValueError:
            return  # outside the space
        self._vectors.append(vector)
        self._durations_s.append(duration_s)


def is_duration(seconds: object) -> TypeGuard[float]:
    """Return whether a value is a run time: a finite number above 0."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return math.isfinite(seconds) and seconds > 0
