"""Median stopping: stops a trial whose best result is below the median of earlier averages.

Source: Golovin et al., Google Vizier: A Service for Black-Box Optimization, KDD 2017, section
3.2.2.
"""

from bisect import insort
from typing import Annotated

from nni.hpo.base import Assessor, AssessResult
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import checked_optimize_mode, loss_of
from nni.hpo.registry.arguments import Mode
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import IntRange


@algorithm(
    "Medianstop",
    use_when="In general; it needs no assumption about the curves.",
    documented_as="nni.algorithms.hpo.medianstop_assessor.MedianstopAssessor",
)
class MedianstopAssessor(Assessor):
    """Median stopping rule: compares a running trial with completed ones at the same step.

    At step S, the length of the history, a trial is `Bad` exactly when its best value so far is
    strictly worse than the median, over the completed trials that reached step S, of the mean of
    their first S values. Values that are no finite numbers count neither as best nor in a mean: a
    completed trial takes part up to the step before its first such value.

    Args:
        optimize_mode: `maximize` or `minimize`.
        start_step: trials with fewer results than this are always `Good`.

    Examples:
        >>> from nni.hpo import MedianstopAssessor
        >>> assessor = MedianstopAssessor(optimize_mode="maximize")
        >>> for trial, accuracies in (("a", [0.5, 0.7]), ("b", [0.2, 0.3])):
        ...     _ = assessor.assess_trial(trial, accuracies)
        ...     assessor.trial_end(trial, success=True)
        >>> assessor.assess_trial("c", [0.1, 0.2])
        <AssessResult.Bad: False>
    """

    def __init__(
        self, optimize_mode: Mode = "maximize", start_step: Annotated[int, IntRange(0, 9999)] = 0
    ) -> None:
        self._mode = checked_optimize_mode(optimize_mode)
        self._start_step = start_step
        self._running: dict[str, list[float | None]] = {}
        self._means_at_step: list[list[float]] = []

    def assess_trial(self, trial_job_id: str, trial_history: list[JsonValue]) -> AssessResult:
        """Store the losses; return Bad if the best is worse than the median mean at its step."""
        losses = [loss_of(value, self._mode) for value in trial_history]
        self._running[trial_job_id] = losses
        step = len(losses)
        if step < self._start_step or step > len(self._means_at_step):
            return AssessResult.Good
        known = [loss for loss in losses if loss is not None]
        if not known:
            return AssessResult.Good
        worse = min(known) > _median(self._means_at_step[step - 1])
        return AssessResult.Bad if worse else AssessResult.Good

    def trial_end(self, trial_job_id: str, success: bool) -> None:  # noqa: FBT001 - documented signature
        """Forget an ended trial; add a successful one's running means to those of each step."""
        losses = self._running.pop(trial_job_id, None)
        if losses is None or not success:
            return
        total = 0.0
        for index, loss in enumerate(losses):
            if loss is None:
                return
            total += loss
            if index == len(self._means_at_step):
                self._means_at_step.append([])
            insort(self._means_at_step[index], total / (index + 1))

    def state(self) -> dict[str, JsonValue]:
        """Return the losses of running trials, and the means at each step, as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {"running": self._running, "means_at_step": self._means_at_step}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the losses of running trials, and the means at each step.

        Args:
            state: what `state` of an assessor with the same arguments returned.
        """
        self._running = {key: list(losses) for key, losses in state["running"].items()}
        self._means_at_step = [list(means) for means in state["means_at_step"]]


def _median(ordered: list[float]) -> float:
    """Return the median of a non-empty ascending list."""
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
