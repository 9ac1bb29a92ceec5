"""`nnictl experiment save` and `load`: experiments that move between installations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nni.cli.options import Json
from nni.cli.output import Messages, write_json

_MEGABYTE = 1_000_000


def register(app: typer.Typer) -> None:
    """Add the commands `save` and `load` to `nnictl experiment`."""
    app.command("save")(save)
    app.command("load")(load)


def save(
    *,
    id: Annotated[  # noqa: A002 - the documented name of the argument
        str, typer.Argument(metavar="ID", show_default=False, help="The experiment.")
    ],
    path: Annotated[
        Path, typer.Option("--path", "-p", help="Folder for the archive.", show_default="here")
    ] = Path(),
    save_code_dir: Annotated[
        bool,
        typer.Option("--saveCodeDir", "--save-code-dir", "-s", help="The code of its trials, too."),
    ] = False,
    without_files: Annotated[
        bool,
        typer.Option(
            "--without-files", help="Leave out logs and what trials wrote: the log is enough."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write an experiment to one file, secrets in its configuration too, to load it elsewhere.

    The file holds the configuration as it was given, passwords in it included: only you can read
    it. The environment of your shell is not in it.
    """
    from nni.cli.session import experiment
    from nni.experiment.transfer import save as run

    with experiment(id) as (client, experiment_id):
        saved = run(
            client,
            experiment_id,
            path.expanduser(),
            with_code=save_code_dir,
            with_files=not without_files,
        )
    if as_json:
        write_json(
            {
                "experimentId": experiment_id,
                "path": str(saved.path.resolve()),
                "files": saved.file_count,
                "sizeBytes": saved.size_bytes,
            }
        )
    else:
        size = f"{saved.file_count} files, {saved.size_bytes / _MEGABYTE:.1f} MB"
        Messages().info(f"Experiment {experiment_id} is saved to {saved.path} ({size}).")


def load(
    *,
    path: Annotated[Path, typer.Option("--path", "-p", show_default=False, help="The archive.")],
    code_dir: Annotated[
        Path,
        typer.Option(
            "--codeDir",
            "--code-dir",
            "-c",
            show_default=False,
            help="Where the code of its trials goes, or lies already.",
        ),
    ],
    log_dir: Annotated[
        Path | None,
        typer.Option(
            "--logDir",
            "--log-dir",
            "-l",
            show_default=False,
            help="Root folder: the experiment will live in DIR/ID. Default: the usual one.",
        ),
    ] = None,
    search_space_path: Annotated[
        Path | None,
        typer.Option(
            "--searchSpacePath",
            "--search-space-path",
            "-s",
            show_default=False,
            help="File for its search space. Default: search_space.json in --codeDir.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Load an experiment that was saved elsewhere; then view, resume or replay it."""
    from nni.cli.session import manager
    from nni.experiment.records import experiment_metadata
    from nni.experiment.transfer import load as run

    messages = Messages()
    with manager(start=True) as client:
        loaded = run(
            client,
            path.expanduser(),
            code_dir,
            root=log_dir,
            search_space_path=search_space_path,
        )
    directory = Path(loaded.config.trial_code_directory)
    if not directory.is_dir() or not any(directory.iterdir()):
        messages.warning(
            f"the archive holds no code and {directory} has none: place it there before you resume"
        )
    if as_json:
        write_json(experiment_metadata(loaded))
        return
    messages.info(f"Experiment {loaded.id} is loaded into {loaded.directory}.")
    messages.info(
        f"See it with: nnictl view {loaded.id}; let it go on with: nnictl resume {loaded.id}"
    )
