"""`nnictl platform`: what the installation has on the machines and clusters of a configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nni.cli.options import Json
from nni.cli.output import Messages, echo, table, write_json

if TYPE_CHECKING:
    from nni.experiment.config import ExperimentConfig
    from nni_proto.runner.v1 import pool_service_pb2 as pb

app = typer.Typer(
    help="Clean the machines and clusters that experiments have used.", no_args_is_help=True
)

_HEADERS = ("Platform", "Pool", "Agents", "State")
_IN_USE = "in use"
_REMOVED = "removed"
_LEFT = "left"


@app.callback()
def _group() -> None:
    """Clean the machines and clusters that experiments have used."""


@app.command("clean")
def clean(
    *,
    config: Annotated[
        Path,
        typer.Option(
            "--config",
            "-c",
            show_default=False,
            help="YAML file of an experiment, for its platforms.",
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be removed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask for no confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Remove agents of no experiment and no pool from the platforms of a configuration.

    Agents with their jobs, actors, pods and folders, and bundles that no agent uses. What belongs
    to a live experiment or a pool is named and left alone.
    """
    from nni.cli.session import manager
    from nni.experiment.config import ExperimentConfig
    from nni.experiment.conversion import platforms_to_proto
    from nni.experiment.errors import RefusedError

    messages = Messages()
    experiment_config = ExperimentConfig.load(config, warn=messages.warning)
    platforms = platforms_to_proto(experiment_config)
    if not (dry_run or yes or (sys.stdin.isatty() and not as_json)):
        raise RefusedError("nothing is removed without a confirmation: add --yes, or --dry-run")
    with manager() as client:
        if not yes:
            found = client.clean_platforms(platforms, dry_run=True)
            _show(found, experiment_config, as_json=as_json)
            if dry_run or not _confirmed():
                return
        done = client.clean_platforms(platforms, dry_run=False)
    _show(done, experiment_config, as_json=as_json)


def _confirmed() -> bool:
    return typer.confirm("Remove what is left, and bundles that no agent uses?")


def _show(answer: pb.CleanPlatformsResponse, config: ExperimentConfig, *, as_json: bool) -> None:
    """Print the agents found on platforms; raise UnreachableError if one was not cleaned.

    Raises:
        UnreachableError: a platform was not cleaned.
    """
    from nni.experiment.errors import UnreachableError

    names = [service.platform for service in config.training_services()]
    records = [
        _record(one.pool, names[one.platform_index], list(one.agents), _state_of(one))
        for one in answer.leftovers
    ]
    if as_json:
        write_json({"leftovers": records, "problems": list(answer.problems)})
    elif records:
        echo(
            table(
                _HEADERS,
                [
                    (one["platform"], one["pool"], ",".join(one["agents"]), one["state"])
                    for one in records
                ],
            )
        )
    elif not answer.problems:
        Messages().info("No agent of this installation is on these platforms.")
    used = sorted({one["pool"] for one in records if one["state"] == _IN_USE})
    for pool in used:
        Messages().warning(f"Pool {pool} is in use and was left alone: {_remedy(pool)}")
    if answer.problems:
        raise UnreachableError("not cleaned: " + "; ".join(answer.problems))


def _state_of(leftover: Any) -> str:  # noqa: ANN401 - a message
    if leftover.in_use:
        return _IN_USE
    return _REMOVED if leftover.removed else _LEFT


def _remedy(pool: str) -> str:
    from nni_wire.pools import experiment_of_pool

    experiment_id = experiment_of_pool(pool)
    if experiment_id is None:
        return f"nnictl pool rm {pool} removes it"
    return f"nnictl stop {experiment_id} stops its experiment"


def _record(pool: str, platform: str, agents: list[str], state: str) -> dict[str, Any]:
    return {"platform": platform, "pool": pool, "agents": agents, "state": state}
