"""`nnictl quickstart`: files of an experiment for a training script."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nni.cli.output import Messages


def register(app: typer.Typer) -> None:
    """Add the command `quickstart` to ``app``."""
    app.command("quickstart")(quickstart)


def quickstart(
    *,
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT", show_default=False, help="A Python file.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write a commented configuration, search space and trial for a script, beside it.

    The script is read and not run: its `add_argument` lines or its annotations are the
    hyperparameters.
    """
    from nni.experiment.config.yaml_file import read_text
    from nni.experiment.errors import ConfigError, Problem, RefusedError
    from nni.experiment.quickstart import CONFIG_FILE, files_of, outline_of

    text = read_text(script, "SCRIPT")
    try:
        files = files_of(script.name, outline_of(text))
    except SyntaxError as error:
        rule = f"must be Python: {error.msg} in line {error.lineno}"
        raise ConfigError([Problem("SCRIPT", rule, str(script))]) from error
    except ValueError as error:
        raise ConfigError([Problem(str(script), str(error))]) from error
    except (RecursionError, MemoryError) as error:
        raise ConfigError(
            [Problem("SCRIPT", "must not be nested that deeply", str(script))]
        ) from error
    paths = {script.parent / name: content for name, content in files.items()}
    taken = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if taken and not force:
        raise RefusedError(f"{', '.join(taken)} exists; remove it, or give --force to replace it")
    messages = Messages()
    for path, content in paths.items():
        try:
            path.unlink(missing_ok=True)  # a link is replaced, not the file that it names
            with path.open("x", encoding="utf-8") as file:
                file.write(content)
        except OSError as error:
            raise RefusedError(f"{path} cannot be written: {error.strerror}") from error
        messages.info(f"{path} is written.")
    messages.info(
        f"Look at the ranges, then run: nnictl create --config {script.parent / CONFIG_FILE}"
    )
