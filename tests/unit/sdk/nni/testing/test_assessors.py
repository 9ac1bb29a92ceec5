"""The shipped suite finds the faults it is for."""

from typing import Any

import pytest

from nni.hpo import Assessor, AssessResult, MedianstopAssessor
from nni.testing import AssessorConformance


class Suite(AssessorConformance):
    """A suite with an assessor that is changed by each test."""

    __test__ = False

    def __init__(self, assessor: type[Assessor]) -> None:
        self.assessor = assessor

    def make(self) -> Assessor:
        return self.assessor()


class Strict(MedianstopAssessor):
    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        return AssessResult.Bad


class Fragile(MedianstopAssessor):
    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        return super().assess_trial(trial_job_id, [float(value) for value in trial_history])


class Forgetful(MedianstopAssessor):
    def load_state(self, state: dict[str, Any]) -> None:
        pass


@pytest.mark.parametrize(
    ("assessor", "test"),
    [
        (Strict, "test_first_trial_may_go_on"),
        (Fragile, "test_metrics_that_are_no_numbers_are_survived"),
        (Fragile, "test_default_of_a_dict_metric_counts"),
        (Forgetful, "test_goes_on_from_its_state"),
    ],
)
def test_faulty_assessor_fails_the_test_for_its_fault(assessor: type[Assessor], test: str) -> None:
    sound, faulty = Suite(MedianstopAssessor), Suite(assessor)

    getattr(sound, test)()
    with pytest.raises((AssertionError, ValueError, TypeError)):
        getattr(faulty, test)()
