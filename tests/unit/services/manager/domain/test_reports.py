from dataclasses import replace

from nni_proto.trial.v1 import report_pb2
from svc_manager.domain.reports import ExitCause, Exited, Report, Started


def test_reports_of_one_claim_share_their_key_whatever_their_sequence() -> None:
    first = Report("r1", "t1", 2, 0, "c1", Started(1))

    assert first.claim == replace(first, sequence=7).claim == ("t1", 2, "c1")
    assert first.claim != replace(first, attempt=3).claim
    assert first.claim != replace(first, claim_id="c2").claim


def test_a_process_is_a_new_one_unless_a_report_says_otherwise() -> None:
    assert not Started(1).warm


def test_process_has_no_id_gpu_or_signal_unless_a_report_names_them() -> None:
    started, ended = Started(1), Exited(1, ExitCause.ENDED)

    assert (started.pid, started.gpu_indices) == (0, ())
    assert (ended.exit_code, ended.signal, ended.detail) == (None, 0, "")


def test_numbers_of_exit_causes_are_those_of_the_contract() -> None:
    contract = {f"EXIT_CAUSE_{cause.name}": cause.value for cause in ExitCause}

    assert contract == dict(report_pb2.ExitCause.items())
