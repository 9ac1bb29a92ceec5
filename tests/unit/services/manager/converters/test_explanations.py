from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from svc_common.experiment_events.causes import EndCause, EndReason, LossCause, LossReason
from svc_manager.converters.explanations import explanation_view
from svc_manager.domain.explanation import Explanation, Reason, ReasonKind, TrialOutcome
from svc_manager.domain.trial import LostAttempt, TrialState

END = EndReason(EndCause.SIGNAL, signal=9)


def test_an_explanation_keeps_all_its_parts() -> None:
    explanation = Explanation(
        "t1",
        TrialState.FAILED,
        TrialOutcome.FAILED,
        "trial t1 failed",
        (Reason(ReasonKind.SIGNAL, "killed", "more memory"),),
        (LostAttempt(1, "r1", LossReason(LossCause.COMMAND_FAILED, end=END)),),
        "Traceback",
        None,
        9,
        END,
    )

    view = explanation_view(explanation)

    assert (view.trial_id, view.state) == ("t1", trial_pb2.TRIAL_STATE_FAILED)
    assert view.verdict == trial_service_pb2.VERDICT_FAILED
    assert (view.reasons[0].text, view.reasons[0].remedy) == ("killed", "more memory")
    assert view.lost_attempts[0].command_failed
    assert view.lost_attempts[0].reason == "signal 9"
    assert view.lost_attempts[0].loss.end.signal == view.end.signal == 9
    assert (view.stderr_tail, view.signal) == ("Traceback", 9)
    assert not view.HasField("exit_code")


def test_the_exit_code_zero_is_not_lost() -> None:
    explanation = Explanation("t1", None, TrialOutcome.SUCCEEDED, "", exit_code=0)

    view = explanation_view(explanation)

    assert view.HasField("exit_code")
    assert view.state == trial_pb2.TRIAL_STATE_UNSPECIFIED


def test_outcomes_and_kinds_have_the_numbers_of_the_contract() -> None:
    for outcome in TrialOutcome:
        assert trial_service_pb2.Verdict.Name(outcome.value) == f"VERDICT_{outcome.name}"  # type: ignore[arg-type] # the contract's numbers
    for kind in ReasonKind:
        assert trial_service_pb2.ReasonKind.Name(kind.value) == f"REASON_KIND_{kind.name}"  # type: ignore[arg-type] # the contract's numbers
