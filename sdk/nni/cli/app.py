"""The tree of commands; each module of `nni.cli` adds its own."""

from __future__ import annotations

from typing import Annotated

import typer

from nni.cli import (
    create,
    data,
    doctor,
    experiment,
    logs,
    machine,
    runner,
    search_space,
    show,
    stop,
    top,
    trial,
    update,
)

app = typer.Typer(
    name="nnictl",
    help="Start, watch, change and stop experiments.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - the signature of a callback
    if wanted:
        from nni.version import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", callback=_show_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Start, watch, change and stop experiments."""


create.register(app)
stop.register(app)
app.add_typer(update.app, name="update")
app.add_typer(trial.app, name="trial")
app.add_typer(experiment.app, name="experiment")
data.register(experiment.app)
top.register(app)
app.add_typer(logs.app, name="log")
app.add_typer(show.config_app, name="config")
app.add_typer(show.webui_app, name="webui")
app.add_typer(runner.app, name="runner")
search_space.register(app)
machine.register(app)
doctor.register(app)
