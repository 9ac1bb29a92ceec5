"""`nnictl runner`: the agents that run trials."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nni.cli.completion import pool_names, runner_ids
from nni.cli.listing import Output, write_listing
from nni.cli.options import Json
from nni.cli.output import Messages, complain, echo, local_time, table, write_json

if TYPE_CHECKING:
    from nni_proto.experiment.v1 import experiment_service_pb2
    from nni_proto.runner.v1 import invitation_service_pb2

app = typer.Typer(help="Show, invite and drain the agents that run trials.", no_args_is_help=True)

_HEADERS = (
    *("Id", "Pool", "Platform", "State", "Machine", "Slots", "GPUs", "Trials", "LastSeen"),
    *("Version", "Reason"),
)

RunnerId = Annotated[
    str,
    typer.Argument(
        metavar="RUNNER",
        show_default=False,
        help="Id or the start of it.",
        autocompletion=runner_ids,
    ),
]


Pool = Annotated[
    str,
    typer.Option(
        help="exp-<id> of a running experiment, or a pool of the installation.",
        autocompletion=pool_names,
    ),
]
_AGENT_PACKAGE = "svc_trial_runner"
_VALIDITY_LIMIT_S = 30 * 86_400.0


@app.command("list")
def list_runners(*, output: Output = "table", as_json: Json = False) -> None:
    """List the agents that are connected, and those that platforms run or have been ordered.

    Below them is the TLS front, if it is open: address and fingerprint of its authority.
    """
    from nni.cli.front_state import CLOSED, front_state
    from nni.cli.session import manager

    with manager() as client:
        records = [_record(runner) for runner in client.runners()]
        front = front_state(client) if output == "table" and not as_json else CLOSED
    rows = [
        (
            record["id"],
            record["pool"],
            record["platform"],
            record["state"],
            record["hostName"],
            record["slots"] or "",
            record["gpuCount"],
            record["trialCount"],
            local_time(record["lastSeen"]) if record["lastSeen"] else "",
            record["version"],
            record["reason"],
        )
        for record in records
    ]
    write_listing(records, _HEADERS, lambda: rows, output=output, as_json=as_json)
    if front != CLOSED:
        Messages().info(f"TLS front: {front}")


@app.command("show")
def show(*, runner: RunnerId, as_json: Json = False) -> None:
    """Print an agent and the trials that it holds."""
    record = _record(_find(runner, _runners()))
    if as_json:
        write_json(record)
        return
    trials = record.pop("trials")
    echo("\n".join(f"{name}: {value}" for name, value in record.items()))
    headers = ("Experiment", "Trial", "Attempt", "Warm", "WaitingFor")
    keys = ("experimentId", "trialId", "attempt", "warm", "waitingFor")
    echo(table(headers, [[trial[key] for key in keys] for trial in trials]))


@app.command("drain")
def drain(runner: RunnerId) -> None:
    """Drain an agent: it takes no new trial and ends after its last one."""
    from nni.cli.session import manager

    with manager() as client:
        found = _find(runner, client.runners())
        client.drain_runner(found.runner_id)
    Messages().info(f"Runner {found.runner_id} takes no more trials.")


@app.command("invite")
def invite(
    *,
    pool: Pool,
    uses: Annotated[int, typer.Option(min=1, help="Machines that may join.")] = 1,
    valid: Annotated[str, typer.Option(help="For how long, such as 30m or 2d.")] = "1h",
    as_json: Json = False,
) -> None:
    """Print the word by which other machines join a pool, and the command line to run on them.

    The word is shown once, and is a secret: a machine that has it may run trials of the pool.
    """
    from nni.cli.session import manager

    try:
        from nni.experiment.config.quantities import duration_seconds

        seconds = duration_seconds(valid)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--valid") from error
    if seconds > _VALIDITY_LIMIT_S:
        raise typer.BadParameter("must be at most 30d", param_hint="--valid")
    with manager() as client:
        made = client.invite_runner(pool, uses, seconds)
    record = {**_invitation(made.invitation), "address": made.address, "word": made.word}
    if as_json:
        write_json(record)
        return
    echo(made.word)  # alone on stdout, for `$(nnictl runner invite ...)`
    complain(
        f"INFO: Run on the other machine, and paste the word there:\n"
        f"  nnictl runner join https://{made.address} --pool {pool}\n"
        f"The word is valid until {local_time(record['expiresAt'])}, for {uses} machine(s); "
        f"revoke it by: nnictl runner revoke {made.invitation.id} --pool {pool}"
    )


@app.command("invitations")
def invitations(*, pool: Pool, output: Output = "table", as_json: Json = False) -> None:
    """List the valid invitations to a pool; their secret words are not stored."""
    from nni.cli.session import manager

    with manager() as client:
        records = [_invitation(one) for one in client.invitations(pool)]
    rows = [(one["id"], one["uses"], local_time(one["expiresAt"])) for one in records]
    headers = ("Id", "Uses", "ValidUntil")
    write_listing(records, headers, lambda: rows, output=output, as_json=as_json)


@app.command("revoke")
def revoke(
    *,
    pool: Pool,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Invitations; none: all.")
    ] = None,
) -> None:
    """Revoke invitations to a pool; agents that have joined by them stay."""
    from nni.cli.session import manager

    with manager() as client:
        ended = client.revoke_invitations(pool, ids or ())
    Messages().info(f"Invitations ended: {', '.join(one.id for one in ended) or 'none'}.")


@app.command("join")
def join(
    *,
    address: Annotated[str, typer.Argument(metavar="https://HOST:PORT", show_default=False)],
    pool: Pool,
    word_file: Annotated[
        str, typer.Option(help="File with the word; - is the standard input.")
    ] = "-",
    slots: Annotated[int, typer.Option(min=1, help="Trials at once.")] = 1,
    gpu_indices: Annotated[str, typer.Option(help="GPUs for trials, such as 0,2.")] = "",
    folder: Annotated[str, typer.Option(help="Folder of the agent.")] = "",
) -> None:
    """Turn this machine into an agent of a pool, until Ctrl-C.

    Ctrl-C lets it end after its last trial; a second one ends it at once. The word is read from the
    terminal, the standard input or a file.
    """
    if importlib.util.find_spec(_AGENT_PACKAGE) is None:
        from nni.experiment.errors import RefusedError

        raise RefusedError("this machine has no agent: pip install nni-svc-trial-runner")
    command = join_command(address, pool, word_file, slots, gpu_indices, folder)
    os.execv(command[0], command)  # noqa: S606 - the agent takes this process's place


def join_command(
    address: str, pool: str, word_file: str, slots: int, gpu_indices: str, folder: str
) -> list[str]:
    """Return the command line of the agent, which reads its secret word from a file."""
    # -P: a file of the working directory must never be imported in place of a package.
    command = [sys.executable, "-P", "-m", f"{_AGENT_PACKAGE}.joining", address, "--pool", pool]
    command += ["--word-file", word_file, "--slots", str(slots)]
    command += ["--gpu-indices", gpu_indices] if gpu_indices else []
    command += ["--folder", folder] if folder else []
    return command


def _invitation(one: invitation_service_pb2.Invitation) -> dict[str, Any]:
    from nni.experiment.records import milliseconds

    return {"id": one.id, "uses": one.use_limit, "expiresAt": milliseconds(one.expires_at)}


def _runners() -> list[experiment_service_pb2.RunnerSummary]:
    from nni.cli.session import manager

    with manager() as client:
        return client.runners()


def _find(
    word: str, runners: list[experiment_service_pb2.RunnerSummary]
) -> experiment_service_pb2.RunnerSummary:
    from nni.experiment.errors import NotFoundError

    exact = [runner for runner in runners if runner.runner_id == word]
    found = exact or [runner for runner in runners if runner.runner_id.startswith(word)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(runner.runner_id for runner in runners) or "none"
    raise NotFoundError(f"there is no runner {word!r}; known are: {known}")


def _state(runner: experiment_service_pb2.RunnerSummary) -> str:
    """Return DRAINING, else the state that the platform reports, else RUNNING."""
    from nni_proto.runner.v1 import pool_pb2

    if runner.draining:
        return "DRAINING"
    if not runner.state:
        return "RUNNING"
    return pool_pb2.PoolAgentState.Name(runner.state).removeprefix("POOL_AGENT_STATE_")


def _record(runner: experiment_service_pb2.RunnerSummary) -> dict[str, Any]:
    from nni.experiment.records import milliseconds

    return {
        "id": runner.runner_id,
        "pool": runner.pool,
        "platform": runner.platform,
        "state": _state(runner),
        "reason": runner.reason,
        "slots": runner.slots,
        "hostName": runner.host_name,
        "grpc": runner.grpc_address,
        "trialCount": runner.trial_count,
        "gpuCount": runner.gpu_count,
        "draining": runner.draining,
        "lastSeen": milliseconds(runner.last_seen_at),
        "version": runner.version,
        "trials": [
            {
                "experimentId": trial.experiment_id,
                "trialId": trial.trial_id,
                "attempt": trial.attempt,
                "warm": trial.warm,
                "waitingFor": trial.waiting_for,
            }
            for trial in runner.trials
        ],
    }
