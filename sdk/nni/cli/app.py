"""The tree of commands; each module of `nni.cli` adds its own."""

from __future__ import annotations

from typing import Annotated

import typer

from nni.cli import (
    access,
    algo,
    analysis,
    compare,
    completion,
    compress,
    convert,
    create,
    data,
    doctor,
    experiment,
    logs,
    machine,
    nas,
    platforms,
    pool,
    quickstart,
    replay,
    runner,
    save,
    search_space,
    show,
    stop,
    storage,
    top,
    training_services,
    trial,
    update,
    why,
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
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            metavar="URL",
            show_default=False,
            help="Use the services there, https://HOST:PORT. Default: NNI_ENDPOINT.",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            show_default=False,
            help="Where your token for them stands. Default: NNI_TOKEN, NNI_TOKEN_FILE.",
        ),
    ] = None,
    ca_file: Annotated[
        str | None,
        typer.Option(
            "--ca-file",
            metavar="FILE",
            show_default=False,
            help="Authority that has signed them. Default: NNI_CA_FILE.",
        ),
    ] = None,
) -> None:
    """Start, watch, change and stop experiments."""
    if endpoint or token_file or ca_file:
        from nni.experiment.environment import name_services

        name_services(endpoint, token_file, ca_file)


create.register(app)
stop.register(app)
app.add_typer(update.app, name="update")
app.add_typer(trial.app, name="trial")
why.register(trial.app)
app.add_typer(experiment.app, name="experiment")
data.register(experiment.app)
replay.register(experiment.app)
save.register(experiment.app)
analysis.register(experiment.app)
compare.register(experiment.app)
top.register(app)
app.add_typer(logs.app, name="log")
app.add_typer(show.config_app, name="config")
convert.register(show.config_app)
app.add_typer(show.webui_app, name="webui")
app.add_typer(compress.app, name="compress")
app.add_typer(nas.app, name="nas")
app.add_typer(platforms.app, name="platform")
app.add_typer(pool.app, name="pool")
app.add_typer(runner.app, name="runner")
app.add_typer(storage.app, name="storage")
app.add_typer(algo.app, name="algo")
app.add_typer(training_services.app, name="trainingservice")
app.add_typer(access.app, name="token")
quickstart.register(app)
search_space.register(app)
machine.register(app)
doctor.register(app)
completion.register(app)
