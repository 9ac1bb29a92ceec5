"""Converter of explanations to proto."""

from nni_proto.trial.v1 import trial_service_pb2
from svc_manager.domain.explanation import Explanation


def explanation_view(explanation: Explanation) -> trial_service_pb2.ExplainTrialResponse:
    """Return the proto message of an explanation."""
    view = trial_service_pb2.ExplainTrialResponse(
        trial_id=explanation.trial_id,
        verdict=explanation.outcome.value,  # type: ignore[arg-type] # the contract's numbers
        summary=explanation.summary,
        reasons=[
            trial_service_pb2.Reason(
                kind=reason.kind.value,  # type: ignore[arg-type] # the contract's numbers
                text=reason.text,
                remedy=reason.remedy,
            )
            for reason in explanation.reasons
        ],
        lost_attempts=[
            trial_service_pb2.LostAttempt(
                attempt=lost.attempt,
                runner_id=lost.runner_id,
                reason=lost.reason,
                command_failed=lost.command_failed,
            )
            for lost in explanation.lost_attempts
        ],
        stderr_tail=explanation.stderr_tail,
        signal=explanation.signal,
    )
    if explanation.state is not None:
        view.state = explanation.state.value  # type: ignore[assignment] # the contract's numbers
    if explanation.exit_code is not None:
        view.exit_code = explanation.exit_code
    return view
