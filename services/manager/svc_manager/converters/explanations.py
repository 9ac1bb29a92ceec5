"""Converter of explanations to proto."""

from nni_proto.trial.v1 import trial_service_pb2
from svc_common.experiment_events.cause_text import loss_text
from svc_manager.converters.reasons import write_end, write_loss
from svc_manager.domain.explanation import Explanation
from svc_manager.domain.trial import LostAttempt


def explanation_view(explanation: Explanation) -> trial_service_pb2.ExplainTrialResponse:
    """Convert an explanation of a trial's state to the gRPC response."""
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
        lost_attempts=map(_lost_view, explanation.lost_attempts),
        stderr_tail=explanation.stderr_tail,
        signal=explanation.signal,
    )
    if explanation.state is not None:
        view.state = explanation.state.value  # type: ignore[assignment] # the contract's numbers
    if explanation.exit_code is not None:
        view.exit_code = explanation.exit_code
    if explanation.end is not None:
        write_end(view.end, explanation.end)
    return view


def _lost_view(lost: LostAttempt) -> trial_service_pb2.LostAttempt:
    view = trial_service_pb2.LostAttempt(
        attempt=lost.attempt,
        runner_id=lost.runner_id,
        reason=loss_text(lost.loss),
        command_failed=lost.command_failed,
    )
    write_loss(view.loss, lost.loss)
    return view
