"""`nnictl experiment`: show, list and delete experiments; other modules add to the group."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json, OptionalId, RequiredId
from nni.cli.output import Messages, echo, local_time, write_json

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient

app = typer.Typer(
    help="Show, list, delete, recover, export, import, replay, save and load experiments.",
    no_args_is_help=True,
)

_PROGRESS_EVERY_S: Final = 2.0

_HEADERS = ("Id", "Name", "Status", "Port", "Platform", "StartTime", "EndTime")


@app.command("show")
def show(*, id: OptionalId = None, as_json: Json = False) -> None:  # noqa: A002 - documented
    """Print the profile of an experiment, as JSON."""
    from nni.cli.session import experiment
    from nni.experiment.rest import get_json

    _ = as_json  # it is JSON anyway
    with experiment(id) as (client, experiment_id):
        endpoint = client.endpoint
        url = f"{endpoint.http}/api/v1/nni/experiments/{experiment_id}/experiment"
        write_json(get_json(url, endpoint.token))


@app.command("status")
def status(*, id: OptionalId = None, as_json: Json = False) -> None:  # noqa: A002 - documented
    """Print state and errors of an experiment, and what it waits for, as JSON."""
    from nni.cli.session import experiment
    from nni.experiment.records import state_name, trial_counts

    _ = as_json  # it is JSON anyway
    with experiment(id) as (client, experiment_id):
        message = client.get(experiment_id).experiment
    write_json(
        {
            "status": state_name(message.state),
            "errors": list(message.errors),
            "waitingFor": message.waiting_for,
            "trials": trial_counts(message),
            "repeatable": message.repeatable,
        }
    )


@app.command("list")
def list_experiments(
    *,
    all: Annotated[bool, typer.Option("--all", help="Stopped ones too.")] = False,  # noqa: A002 - documented
    output: Output = "table",
    as_json: Json = False,
) -> None:
    """List the experiments that run."""
    records = _records(include_stopped=all)
    if records or as_json or output != "table":
        write_listing(records, _HEADERS, lambda: map(_row, records), output=output, as_json=as_json)
    else:
        Messages().warning("There is no experiment" + ("." if all else " running; try --all."))


def _records(*, include_stopped: bool) -> list[dict[str, Any]]:
    from nni.cli.session import manager
    from nni.experiment.errors import WrongStateError
    from nni.experiment.records import experiment_metadata

    try:
        with manager(start=include_stopped) as client:
            found = client.experiments(include_stopped=include_stopped)
    except WrongStateError:  # the services are not up, so nothing runs
        return []
    return [experiment_metadata(message) for message in found]


def _row(record: dict[str, Any]) -> list[object]:
    return [
        record["id"],
        record["name"],
        record["status"],
        record["port"],
        record["platform"],
        local_time(record["startTime"]),
        local_time(record["endTime"]),
    ]


@app.command("delete")
def delete(
    *,
    id: OptionalId = None,  # noqa: A002 - the documented name of the argument
    all: Annotated[bool, typer.Option("--all", help="All that are stopped.")] = False,  # noqa: A002 - documented
) -> None:
    """Delete a stopped experiment: folder, logs and results."""
    from nni.cli import selection
    from nni.cli.session import manager
    from nni.experiment.annotated_code import remove_converted_code
    from nni.experiment.errors import RefusedError

    if (id is None) == (not all):
        raise RefusedError("give the id of an experiment, or --all")
    messages = Messages()
    with manager(start=True) as client:
        running = [found.id for found in client.experiments()]
        known = [found.id for found in client.experiments(include_stopped=True)]
        chosen = [selection.one(id, running, known)] if id else known
        for experiment_id in chosen:
            if all and experiment_id in running:
                messages.warning(f"Experiment {experiment_id} is running and is kept.")
            elif _confirmed(experiment_id):
                code_directory = client.get(experiment_id).experiment.config.trial_code_directory
                client.delete(experiment_id, _Remaining(messages, experiment_id))
                remove_converted_code(code_directory)
                messages.info(f"Experiment {experiment_id} is deleted.")


_OfTrial = Annotated[
    str,
    typer.Option("--trial", "-t", show_default=False, help="A trial of it, instead of itself."),
]


@app.command("tag")
def tag(
    id: RequiredId,  # noqa: A002 - the documented name of the argument
    tags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TAG]...", show_default=False, help="Tags to add."),
    ] = None,
    *,
    trial: _OfTrial = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove them.")] = False,
    star: Annotated[
        bool | None,
        typer.Option("--star/--no-star", show_default=False, help="Set or remove the star."),
    ] = None,
) -> None:
    """Add tags to an experiment or a trial, or remove them; print those that it has."""
    from nni.cli.session import experiment

    with experiment(id) as (client, experiment_id):
        if trial:
            found = client.trial(experiment_id, trial).remarks
        else:
            found = client.get(experiment_id).experiment.remarks
        given = tags or []
        kept = [one for one in found.tags if one not in given]
        new = kept if remove else [*kept, *given]
        if given or star is not None:  # else it is only read, which takes no right to change it
            found = client.change_remarks(
                experiment_id, trial, tags=new if given else None, starred=star
            )
    echo(", ".join(["★"] * found.starred + list(found.tags)) or "no tags")


@app.command("note")
def note(
    id: RequiredId,  # noqa: A002 - the documented name of the argument
    text: Annotated[
        str | None,
        typer.Argument(show_default=False, help="New note; empty: none. Default: print it."),
    ] = None,
    *,
    trial: _OfTrial = "",
) -> None:
    """Print or replace the note of an experiment or a trial."""
    from nni.cli.session import experiment

    with experiment(id) as (client, experiment_id):
        if text is not None:
            client.change_remarks(experiment_id, trial, note=text)
        elif trial:
            echo(client.trial(experiment_id, trial).remarks.note)
        else:
            echo(client.get(experiment_id).experiment.remarks.note)


@app.command("recover")
def recover(
    *,
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="Folders of experiments, each named by its id."),
    ],
) -> None:
    """Bring experiments back from their folders, as STOPPED; a folder stays where it is."""
    from nni.cli.session import manager
    from nni.experiment.errors import ExperimentError, RefusedError

    messages = Messages()
    failed = 0
    with manager(start=True) as client:
        for folder in folders:
            try:
                _recover(client, messages, folder.absolute())
            except ExperimentError as error:
                messages.error(f"{folder}: {error}")
                failed += 1
    if failed:
        raise RefusedError(f"{failed} of {len(folders)} folders were not recovered")


def _recover(client: ManagerClient, messages: Messages, folder: Path) -> None:
    """Register a folder's experiment as STOPPED, by opening and stopping it; raise if known.

    Raises:
        ExperimentError: the folder holds no whole experiment, or one that is known already.
    """
    from nni.experiment.errors import RefusedError

    experiment_id = folder.name
    if not (folder / "db" / "events.log").is_file():
        raise RefusedError(
            "the folder of an experiment must have the file db/events.log, which is missing; "
            "give the folder that has the experiment's id as its name"
        )
    for known in client.experiments(include_stopped=True, id_prefix=experiment_id):
        if known.id == experiment_id:
            raise RefusedError(
                f"experiment {experiment_id} is known already, in {known.directory}; to use "
                f"another folder of it: nnictl resume {experiment_id} --experiment_dir {folder}"
            )
    answer = client.view(experiment_id, port=0, experiment_directory=str(folder))
    for warning in answer.warnings:
        messages.warning(warning)
    found = client.stop(experiment_id)
    trials = sum(found.trial_counts.values())
    messages.info(
        f"Experiment {experiment_id} is back with {trials} trials, STOPPED, in {folder}; to "
        f"continue it: nnictl resume {experiment_id}"
    )


class _Remaining:
    """Callback that prints the progress of a deletion, a line every few seconds at most."""

    def __init__(self, messages: Messages, experiment_id: str) -> None:
        self._messages = messages
        self._id = experiment_id
        self._shown_s = time.monotonic()

    def __call__(self, count: int) -> None:
        """Show how many trial folders are left, unless a line was shown just now."""
        now_s = time.monotonic()
        if now_s - self._shown_s >= _PROGRESS_EVERY_S:
            self._shown_s = now_s
            self._messages.info(
                f"Experiment {self._id} is deleted; {count} trial folders are still on the disk "
                "(the services go on by themselves if you interrupt this)."
            )


def _confirmed(experiment_id: str) -> bool:
    """Ask for confirmation and return it; True without asking if stdin is no terminal."""
    if not sys.stdin.isatty():
        return True
    return typer.confirm(f"Delete everything of experiment {experiment_id}?")
