"""Every built-in assessor against the shipped suite."""

from nni.hpo import Assessor, MedianstopAssessor
from nni.testing import AssessorConformance


class TestMedianstop(AssessorConformance):
    def make(self) -> Assessor:
        return MedianstopAssessor("maximize")


class TestMedianstopLate(AssessorConformance):
    def make(self) -> Assessor:
        return MedianstopAssessor("maximize", start_step=3)
