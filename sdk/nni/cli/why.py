"""`nnictl trial why`: the reason why a trial waits, was stopped or failed, with a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nni.cli.completion import trial_ids
from nni.cli.options import Json, OptionalId
from nni.cli.output import echo, write_json

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni_proto.trial.v1 import trial_service_pb2

Trial = Annotated[
    str | None,
    typer.Argument(
        metavar="[TRIAL]",
        show_default=False,
        help="The trial's id. Default: the next one, that does not exist yet.",
        autocompletion=trial_ids,
    ),
]
_INDENT: Final = "  "


def register(app: typer.Typer) -> None:
    """Add the command `why` to `nnictl trial`."""
    app.command("why")(why)


def why(
    *,
    trial: Trial = None,
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    as_json: Json = False,
) -> None:
    """Explain why a trial waits, was stopped or failed, and show a remedy."""
    from nni.cli.session import experiment, manager

    if id is not None or trial is None:
        with experiment(id) as (client, experiment_id):
            found = client.explain(experiment_id, trial or "")
    else:
        with manager(start=True) as client:
            found = _explain_anywhere(client, trial)
    if as_json:
        write_json(explanation_record(found))
    else:
        echo("\n".join(_lines(found)))


def _explain_anywhere(
    client: ManagerClient, trial_id: str
) -> trial_service_pb2.ExplainTrialResponse:
    """Return a trial's explanation of the first experiment with it, running ones first; or raise.

    Raises:
        NotFoundError: no experiment has such a trial.
    """
    from nni.experiment.errors import NotFoundError

    tried: set[str] = set()
    for include_stopped in (False, True):
        for experiment in client.experiments(include_stopped=include_stopped):
            if experiment.id in tried:
                continue
            tried.add(experiment.id)
            try:
                return client.explain(experiment.id, trial_id)
            except NotFoundError:
                continue
    raise NotFoundError(
        f"no experiment has a trial {trial_id!r}; nnictl trial ls shows the trials of one"
    )


def _lines(found: trial_service_pb2.ExplainTrialResponse) -> list[str]:
    lines = [f"{found.summary[:1].upper()}{found.summary[1:]}."]
    for number, reason in enumerate(found.reasons):
        if number or reason.text not in found.summary:
            lines.append(f"{_INDENT}why: {reason.text}")
        if reason.remedy:
            lines.append(f"{_INDENT}do:  {reason.remedy}")
    lines += [
        f"{_INDENT}attempt {lost.attempt} on {lost.runner_id or 'no agent'}: {_first(lost.reason)}"
        for lost in found.lost_attempts
    ]
    if found.stderr_tail:
        lines += ["stderr ended with:", *(_INDENT + line for line in _split(found.stderr_tail))]
    return lines


def _first(text: str) -> str:
    return next(iter(_split(text)), "")


def _split(text: str) -> list[str]:
    return text.splitlines()


def explanation_record(found: trial_service_pb2.ExplainTrialResponse) -> dict[str, Any]:
    """Return an explanation as `--json` prints it; null for what does not apply."""
    from nni_proto.trial.v1 import cause_pb2, trial_pb2
    from nni_proto.trial.v1 import trial_service_pb2 as pb

    state = trial_pb2.TrialState.Name(found.state).removeprefix("TRIAL_STATE_")
    return {
        "trialJobId": found.trial_id or None,
        "status": state if found.trial_id else None,
        "verdict": pb.Verdict.Name(found.verdict).removeprefix("VERDICT_"),
        "summary": found.summary,
        "reasons": [
            {
                "kind": pb.ReasonKind.Name(reason.kind).removeprefix("REASON_KIND_"),
                "text": reason.text,
                "remedy": reason.remedy,
            }
            for reason in found.reasons
        ],
        "lostAttempts": [
            {
                "attempt": lost.attempt,
                "runnerId": lost.runner_id,
                "reason": lost.reason,
                "cause": cause_pb2.LossCause.Name(lost.loss.cause).removeprefix("LOSS_CAUSE_"),
                "commandFailed": lost.command_failed,
            }
            for lost in found.lost_attempts
        ],
        "stderrTail": found.stderr_tail,
        "exitCode": found.exit_code if found.HasField("exit_code") else None,
        "signal": found.signal or None,
    }
