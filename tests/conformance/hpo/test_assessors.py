"""Every built-in assessor against the shipped suite."""

from nni.hpo import Assessor, CurvefittingAssessor, MedianstopAssessor
from nni.testing import AssessorConformance


class TestMedianstop(AssessorConformance):
    def make(self) -> Assessor:
        return MedianstopAssessor("maximize")


class TestMedianstopLate(AssessorConformance):
    def make(self) -> Assessor:
        return MedianstopAssessor("maximize", start_step=3)


class TestCurvefitting(AssessorConformance):
    def make(self) -> Assessor:
        return CurvefittingAssessor(epoch_num=12)


class TestCurvefittingOften(AssessorConformance):
    def make(self) -> Assessor:
        return CurvefittingAssessor(epoch_num=6, start_step=0, gap=2)
