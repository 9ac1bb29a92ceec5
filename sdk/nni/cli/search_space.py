"""`nnictl ss_gen`: the search space of annotated code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from nni.cli.output import Messages

DEFAULT_FILE: Final = "nni_auto_gen_search_space.json"


def register(app: typer.Typer) -> None:
    """Add the command `ss_gen` to ``app``."""
    app.command("ss_gen")(ss_gen)


def ss_gen(
    *,
    trial_command: Annotated[
        str,
        typer.Option(
            "--trial_command", "--trial-command", "-t", show_default=False, help="The command."
        ),
    ],
    trial_dir: Annotated[
        Path,
        typer.Option("--trial_dir", "--trial-dir", "-d", help="The folder of the trial's code."),
    ] = Path(),
    file: Annotated[Path, typer.Option("--file", "-f", help="The file to write.")] = Path(
        DEFAULT_FILE
    ),
) -> None:
    """Write the search space that the annotations of a trial's code describe, as JSON.

    Nothing is run: the command only says whose space it is.
    """
    import json

    from nni.experiment.annotated_code import annotated_search_space
    from nni.experiment.errors import ConfigError, Problem, RefusedError

    if not trial_command.strip():
        raise ConfigError([Problem("--trial_command", "must be the command of a trial")])
    if not trial_dir.is_dir():
        raise ConfigError([Problem("--trial_dir", "must be a folder", str(trial_dir))])
    space = annotated_search_space(trial_dir.resolve())
    try:
        file.write_text(json.dumps(space, indent=2, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise RefusedError(f"--file cannot be written: {error}") from error
    Messages().info(f"Hyperparameters written to {file}: {len(space)}")
