from dataclasses import replace

from svc_manager.domain.reports import Report, Started


def test_reports_of_one_claim_share_their_key_whatever_their_sequence() -> None:
    first = Report("r1", "t1", 2, 0, "c1", Started(1))

    assert first.claim == replace(first, sequence=7).claim == ("t1", 2, "c1")
    assert first.claim != replace(first, attempt=3).claim
    assert first.claim != replace(first, claim_id="c2").claim


def test_a_process_is_a_new_one_unless_a_report_says_otherwise() -> None:
    assert not Started(1).warm
