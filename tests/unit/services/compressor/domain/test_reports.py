"""Defaults of the compressor's reports."""

from nni.compression.job.steps import Step
from svc_compressor.domain.reports import StepGenerated


def test_step_answers_its_whole_request_unless_the_report_says_otherwise() -> None:
    assert StepGenerated("r", 0, Step(1, "prune")).deferred == 0
