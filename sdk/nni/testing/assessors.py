"""Conformance suite of assessors; a subclass builds the assessor under test."""

import json
import math
from abc import ABC, abstractmethod

from nni.hpo.base import Assessor, AssessResult, Resumable, assess
from nni.hpo.json_value import JsonValue

_CURVES: tuple[tuple[float, ...], ...] = (
    (0.1, 0.4, 0.6, 0.7, 0.75, 0.78),
    (0.2, 0.3, 0.5, 0.6, 0.62, 0.63),
    (0.1, 0.1, 0.1, 0.2, 0.2, 0.2),
    (0.5, 0.4, 0.3, 0.2, 0.1, 0.0),
)


class AssessorConformance(ABC):
    """Tests that every `nni.hpo.base.Assessor` must pass; subclass it in a module of tests.

    Examples:
        >>> from nni.hpo import MedianstopAssessor
        >>> class TestMyAssessor(AssessorConformance):
        ...     def make(self):
        ...         return MedianstopAssessor(optimize_mode="maximize")
        >>> TestMyAssessor().test_first_trial_may_go_on()
    """

    @abstractmethod
    def make(self) -> Assessor:
        """Return a new assessor for values that are to be maximised."""

    def test_first_trial_may_go_on(self) -> None:
        """With nothing to compare with, a trial is good."""
        assessor = self.make()

        assert assessor.assess_trial("a", [0.5]) is AssessResult.Good

    def test_answers_are_assess_results(self) -> None:
        """Each assessment is an `AssessResult`, for all curves."""
        assert all(isinstance(answer, AssessResult) for answer in watch(self.make()))

    def test_same_calls_give_the_same_answers(self) -> None:
        """A new assessor with the same inputs repeats itself."""
        assert watch(self.make()) == watch(self.make())

    def test_calls_may_go_on_after_bad(self) -> None:
        """A trial that is judged again after `Bad` is no error."""
        assessor = self.make()
        watch(assessor)

        for length in range(1, 7):
            assess(assessor, "hopeless", [-1.0] * length)

    def test_a_retried_trial_may_report_other_values(self) -> None:
        """After a retry the earlier elements of a longer history may differ."""
        assessor = self.make()

        assess(assessor, "a", [0.1, 0.2])
        assess(assessor, "a", [0.9, 0.8, 0.7])
        assessor.trial_end("a", True)  # noqa: FBT003 - documented

    def test_ends_of_unknown_and_failed_trials_are_survived(self) -> None:
        """A trial may end without a report, or fail."""
        assessor = self.make()
        assess(assessor, "failed", [0.5])

        assessor.trial_end("unknown", True)  # noqa: FBT003 - documented
        assessor.trial_end("failed", False)  # noqa: FBT003 - documented
        assessor.trial_end("failed", False)  # noqa: FBT003 - documented

        assert assess(assessor, "next", [0.1]) is AssessResult.Good

    def test_metrics_that_are_no_numbers_are_survived(self) -> None:
        """NaN, infinities and odd dicts are legal to report."""
        assessor = self.make()
        history: list[JsonValue] = [math.nan, {"default": 0.5}, {"loss": 1}, math.inf, "text", None]

        for length in range(1, len(history) + 1):
            assess(assessor, "odd", history[:length])
        assessor.trial_end("odd", True)  # noqa: FBT003 - documented

        assert watch(assessor)

    def test_default_of_a_dict_metric_counts(self) -> None:
        """A dict metric counts with its `default`."""
        assert watch(self.make(), wrapped=True) == watch(self.make())

    def test_goes_on_from_its_state(self) -> None:
        """An assessor restored from its state returns the same assessments."""
        assessor, other = self.make(), self.make()
        if not isinstance(assessor, Resumable) or not isinstance(other, Resumable):
            return
        watch(assessor)

        other.load_state(json.loads(json.dumps(assessor.state())))

        assert watch(other, prefix="later") == watch(assessor, prefix="later")


def watch(
    assessor: Assessor, *, wrapped: bool = False, prefix: str = "trial"
) -> list[AssessResult]:
    """Return the assessments of four trials that report in turn and then complete."""
    answers: list[AssessResult] = []
    for length in range(1, len(_CURVES[0]) + 1):
        for index, curve in enumerate(_CURVES):
            history: list[JsonValue] = list(curve[:length])
            if wrapped:
                history = [{"default": value, "loss": 0} for value in history]
            answers.append(assess(assessor, f"{prefix}-{index}", history))
        if length == len(_CURVES[0]) // 2:
            assessor.trial_end(f"{prefix}-0", True)  # noqa: FBT003 - documented
    for index in range(1, len(_CURVES)):
        assessor.trial_end(f"{prefix}-{index}", True)  # noqa: FBT003 - documented
    return answers
