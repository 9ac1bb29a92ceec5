"""`nnictl pool`: the pools of agents that several experiments share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nni.cli.completion import pool_names
from nni.cli.listing import Output, write_listing
from nni.cli.options import Json
from nni.cli.output import Messages, echo, table, write_json

if TYPE_CHECKING:
    from nni_proto.runner.v1 import pool_pb2
    from nni_proto.runner.v1 import pool_service_pb2 as pb

app = typer.Typer(
    help="Define pools of agents that several experiments share.", no_args_is_help=True
)

_HEADERS = ("Name", "State", "Platforms", "Agents", "Waiting", "Running", "Hours", "Experiments")
_SECONDS_PER_HOUR = 3600

PoolName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", show_default=False, help="Of the pool.", autocompletion=pool_names
    ),
]
PoolFilePath = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", show_default=False, help="YAML file with name, platforms and limits."
    ),
]


@app.command("create")
def create(file: PoolFilePath) -> None:
    """Create a pool from a file, once its platforms accept their sections."""
    from nni.cli.session import manager

    definition = _definition(file)
    with manager(start=True) as client:
        client.create_pool(definition)
    Messages().info(
        f"Pool {definition.pool} is created. Experiments use it with trainingService: "
        f"{{platform: pool, name: {definition.pool}}}"
    )


@app.command("update")
def update(
    name: PoolName,
    file: PoolFilePath,
) -> None:
    """Replace platforms, secrets and limits of a pool; running agents follow the new limits."""
    from nni.cli.session import manager
    from nni.experiment.errors import RefusedError

    definition = _definition(file)
    if definition.pool != name:
        raise RefusedError(f"{file} defines pool {definition.pool}, not {name}")
    with manager() as client:
        client.update_pool(definition)
    Messages().info(f"Pool {name} is updated.")


@app.command("list")
def list_pools(*, output: Output = "table", as_json: Json = False) -> None:
    """List the pools of the installation."""
    from nni.cli.session import manager

    with manager() as client:
        records = [_record(pool) for pool in client.pools()]
    keys = ("name", "state", "platforms", "agentCount", "waitingCount", "runningCount", "usedHours")
    rows = [(*(_cell(record[key]) for key in keys), ",".join(_users(record))) for record in records]
    write_listing(records, _HEADERS, lambda: rows, output=output, as_json=as_json)


@app.command("show")
def show(*, name: PoolName, as_json: Json = False) -> None:
    """Print limits, state and agents of a pool, and the experiments that use it."""
    from nni.cli.session import manager

    with manager() as client:
        record = _record(client.pool(name))
    if as_json:
        write_json(record)
        return
    agents, users = record.pop("agents"), record.pop("experiments")
    echo("\n".join(f"{key}: {_cell(value)}" for key, value in record.items() if value != ""))
    agent_keys = ("id", "platform", "state", "machine", "slots", "reason")
    headers = ("Agent", "Platform", "State", "Machine", "Slots", "Reason")
    echo(table(headers, [[agent[key] for key in agent_keys] for agent in agents]))
    user_keys = ("id", "waitingCount", "runningCount")
    echo(
        table(
            ("Experiment", "Waiting", "Running"), [[one[key] for key in user_keys] for one in users]
        )
    )


@app.command("drain")
def drain(
    name: PoolName,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Let the pool take trials again.")] = False,
) -> None:
    """Drain a pool: its agents take no new trials and end after their last ones."""
    from nni.cli.session import manager

    with manager() as client:
        client.drain_pool(name, undo=undo)
    Messages().info(f"Pool {name} takes {'trials again' if undo else 'no more trials'}.")


@app.command("rm")
def remove(
    name: PoolName,
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Even if experiments use it, or a platform cannot be reached for cleaning.",
        ),
    ] = False,
) -> None:
    """Remove a pool: its agents end, and nothing is left on its platforms."""
    from nni.cli.session import manager

    with manager() as client:
        client.remove_pool(name, force=force)
    Messages().info(f"Pool {name} is removed.")


def _definition(file: Path) -> pool_pb2.PoolDefinition:
    from nni.experiment.config.pool_file import PoolFile
    from nni.experiment.pool_calls import pool_to_proto

    return pool_to_proto(PoolFile.load(file))


def _cell(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _users(record: dict[str, Any]) -> list[str]:
    return [one["id"] for one in record["experiments"]]


def _state(definition: pool_pb2.PoolDefinition) -> str:
    if definition.removed:
        return "REMOVING"
    return "DRAINING" if definition.draining else "OPEN"


def _record(pool: pb.Pool) -> dict[str, Any]:
    from nni_proto.runner.v1 import pool_pb2

    definition, state, limits = pool.definition, pool.state, pool.definition.limits
    hours = pool.used_agent_time.ToTimedelta().total_seconds() / _SECONDS_PER_HOUR
    limit_hours = limits.max_agent_time.ToTimedelta().total_seconds() / _SECONDS_PER_HOUR
    return {
        "name": definition.pool,
        "state": _state(definition),
        "platforms": [one.platform for one in definition.platforms],
        "agentCount": len(state.agents),
        "waitingCount": sum(user.waiting_count for user in pool.users),
        "runningCount": sum(user.running_count for user in pool.users),
        "minAgents": limits.min_agents,
        "maxAgents": limits.max_agents or "",
        "idleSeconds": limits.idle.ToTimedelta().total_seconds() or "",
        "usedHours": round(hours, 2),
        "maxHours": round(limit_hours, 2) or "",
        "usedCost": round(hours * limits.cost_per_agent_hour, 2) or "",
        "maxCost": limits.max_cost or "",
        "costPerAgentHour": limits.cost_per_agent_hour or "",
        "reason": state.reason,
        "remedy": state.remedy,
        "agents": [
            {
                "id": agent.name,
                "platform": agent.platform,
                "state": pool_pb2.PoolAgentState.Name(agent.state).removeprefix(
                    "POOL_AGENT_STATE_"
                ),
                "machine": agent.machine,
                "slots": agent.slots,
                "reason": agent.reason,
            }
            for agent in state.agents
        ],
        "experiments": [
            {
                "id": user.experiment_id,
                "waitingCount": user.waiting_count,
                "runningCount": user.running_count,
            }
            for user in pool.users
        ],
    }
