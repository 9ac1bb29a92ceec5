"""`nnictl runner`: the agents that run trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nni.cli.options import Json
from nni.cli.output import Messages, echo, local_time, table, write_json

if TYPE_CHECKING:
    from nni_proto.experiment.v1 import experiment_service_pb2

app = typer.Typer(help="Show and drain the agents that run trials.", no_args_is_help=True)

_HEADERS = (
    *("Id", "Pool", "Platform", "State", "Machine", "Slots", "GPUs", "Trials", "LastSeen"),
    *("Version", "Reason"),
)

RunnerId = Annotated[
    str, typer.Argument(metavar="RUNNER", show_default=False, help="Id or the start of it.")
]


@app.command("list")
def list_runners(*, as_json: Json = False) -> None:
    """List the agents that are connected, and those that platforms have or are asked for."""
    records = [_record(runner) for runner in _runners()]
    if as_json:
        write_json(records)
        return
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
    echo(table(_HEADERS, rows))


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
    """Return the state of an agent: that of its platform, or that it is connected."""
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
