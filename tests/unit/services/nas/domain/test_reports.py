"""Defaults of the NAS service's reports."""

from svc_nas.domain.reports import CandidatesGenerated


def test_candidates_are_neither_the_last_nor_a_part_unless_the_report_says_so() -> None:
    report = CandidatesGenerated("r", ())

    assert (report.deferred, report.exhausted) == (0, False)
