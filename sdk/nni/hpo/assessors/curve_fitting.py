"""Curve fitting: end a trial whose extrapolated curve stays below the best result so far.

Source: Domhan, Springenberg and Hutter, Speeding up Automatic Hyperparameter Optimization of Deep
Neural Networks by Extrapolation of Learning Curves, IJCAI 2015.

Departures: see `nni.hpo.assessors._curve_prediction`; a prediction is compared with a share of the
best value, not by its probability to exceed it.
"""

import math
from typing import Annotated, Final

from nni.hpo.base import Assessor, AssessResult
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import scalar_metric
from nni.hpo.registry.arguments import IN_CONFIGURATIONS, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import FloatRange, IntRange, OneOf

_GROWING: Final = (
    "it extrapolates growing metrics: report the accuracy, or use Medianstop for a loss"
)

_LEAST_VALUES: Final = 5
"""A family has up to four parameters."""


@algorithm(
    "Curvefitting",
    use_when="Metrics that grow smoothly, such as an accuracy after every epoch.",
    documented_as="nni.algorithms.hpo.curvefitting_assessor.CurvefittingAssessor",
    extra="hpo",
)
class CurvefittingAssessor(Assessor):
    """Learning-curve extrapolation: predicts the metric at `epoch_num`; for growing metrics.

    A trial is `Bad` exactly when that prediction is not above `threshold` times the best last value
    of a completed trial. Without a completed trial, between checks and when the curve cannot be
    fitted, it is `Good`. Values that are no finite numbers leave a gap in the curve.

    Args:
        epoch_num: number of intermediate results of a complete trial.
        start_step: trials with fewer results than this are always `Good`.
        threshold: share of the best value below which a prediction is bad.
        gap: number of results between two checks of a trial.
        optimize_mode: only `maximize` is possible.
        seed: of the sampling of weights; None for 0, so that results can be repeated.

    Examples:
        >>> from nni.hpo import CurvefittingAssessor
        >>> assessor = CurvefittingAssessor(epoch_num=20)
        >>> good = [1 - 0.8**epoch for epoch in range(1, 21)]
        >>> _ = assessor.assess_trial("good", good)
        >>> assessor.trial_end("good", success=True)
        >>> assessor.assess_trial("bad", [value / 2 for value in good[:8]])
        <AssessResult.Bad: False>
    """

    def __init__(
        self,
        epoch_num: Annotated[int, IntRange(1, 9999), IN_CONFIGURATIONS] = 20,
        start_step: Annotated[int, IntRange(0, 9999)] = 6,
        threshold: Annotated[float, FloatRange(0, 9999, open_low=True)] = 0.95,
        gap: Annotated[int, IntRange(1, 9999)] = 1,
        optimize_mode: Annotated[str, OneOf("maximize", hint=_GROWING)] = "maximize",
        seed: Seed = None,
    ) -> None:
        self._epochs, self._start, self._gap = epoch_num, start_step, gap
        self._threshold = threshold
        self._seed = seed or 0
        self._last: dict[str, float | None] = {}
        self._best: float | None = None

    def assess_trial(self, trial_job_id: str, trial_history: list[JsonValue]) -> AssessResult:
        """Store the last value; return Bad at a checked step if the prediction is too low."""
        self._last[trial_job_id] = scalar_metric(trial_history[-1])
        length = len(trial_history)
        if self._best is None or length < self._start or (length - self._start) % self._gap:
            return AssessResult.Good
        prediction = self.predicted(trial_history)
        if prediction is None or prediction > self._threshold * self._best:
            return AssessResult.Good
        return AssessResult.Bad

    def predicted(self, history: list[JsonValue]) -> float | None:
        """Return the value expected at `epoch_num`, or None if the curve cannot be fitted.

        Args:
            history: metrics of the trial so far, one per epoch.

        Returns:
            The value, in the unit of the metric; None for too few or too irregular values.
        """
        import numpy as np  # not before the first check: many assessors never come to one

        from nni.hpo.assessors._curve_prediction import predict

        values = [scalar_metric(value) for value in history]
        if sum(value is not None for value in values) < _LEAST_VALUES:
            return None
        curve = np.array([math.nan if value is None else value for value in values])
        return predict(curve, self._epochs, self._seed)

    def trial_end(self, trial_job_id: str, success: bool) -> None:  # noqa: FBT001 - documented signature
        """Forget an ended trial; a successful one's last value may become the best."""
        last = self._last.pop(trial_job_id, None)
        if success and last is not None:
            self._best = last if self._best is None else max(self._best, last)

    def state(self) -> dict[str, JsonValue]:
        """Return each running trial's last value, and the best final value, as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {"last": dict(self._last), "best": self._best}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore each running trial's last value, and the best final value.

        Args:
            state: what `state` of an assessor with the same arguments returned.
        """
        self._last, self._best = dict(state["last"]), state["best"]
