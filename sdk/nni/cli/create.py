"""`nnictl create`, `resume` and `view`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nni.cli.options import Debug, ExperimentDir, Foreground, Port, RequiredId, UrlPrefix
from nni.cli.output import RULE, Messages

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni.experiment.endpoint import Endpoint
    from nni_proto.experiment.v1 import experiment_pb2

DEFAULT_PORT: Final = 8080

_HINTS: Final = (
    ("nnictl experiment show", "show the information of experiments"),
    ("nnictl trial ls", "list all of trial jobs"),
    ("nnictl top", "monitor the status of running experiments"),
    ("nnictl log stderr", "show stderr log content"),
    ("nnictl log stdout", "show stdout log content"),
    ("nnictl stop", "stop an experiment"),
    ("nnictl trial kill", "kill a trial job by id"),
    ("nnictl --help", "get help information about nnictl"),
)
_DOCUMENTATION: Final = "docs/nnictl.md in the repository"


def register(app: typer.Typer) -> None:
    """Add the commands `create`, `resume` and `view` to ``app``."""
    app.command("create")(create)
    app.command("resume")(resume)
    app.command("view")(view)


def create(
    *,
    config: Annotated[
        Path,
        typer.Option(
            "--config", "-c", show_default=False, help="YAML file; one of NNI 1.x is converted."
        ),
    ],
    port: Port = DEFAULT_PORT,
    debug: Debug = False,
    foreground: Foreground = False,
    url_prefix: UrlPrefix = "",
) -> None:
    """Create an experiment and start it."""
    from nni.experiment.annotated_code import converted_code
    from nni.experiment.client import ManagerClient
    from nni.experiment.config import ExperimentConfig
    from nni.experiment.conversion import config_to_proto
    from nni.experiment.environment import experiment_environment
    from nni.experiment.preflight import check_start, secret_in_code

    messages = Messages()
    experiment_config = ExperimentConfig.load(config, warn=messages.warning)
    if debug:
        experiment_config.debug = True
    check_start(experiment_config, port)
    if warning := secret_in_code(experiment_config, config):
        messages.warning(warning)
    with ExitStack() as stack:
        with converted_code(experiment_config) as runnable_config:
            message = config_to_proto(runnable_config)
            client = stack.enter_context(ManagerClient(_services_up(messages)))
            messages.info("Setting local config...")
            environment = experiment_environment()
            messages.info("Successfully set local config!")
            messages.info("Starting experiment...")
            answer = client.create(
                message,
                port=port,
                url_prefix=url_prefix.strip("/"),
                environment=environment,
                interpreter=sys.executable,
            )
        for warning in answer.warnings:
            messages.warning(warning)
        _started(messages, client, answer.experiment, answer.urls, foreground=foreground)


def resume(
    *,
    id: RequiredId,  # noqa: A002 - the documented name of the argument
    port: Port = DEFAULT_PORT,
    debug: Debug = False,
    foreground: Foreground = False,
    experiment_dir: ExperimentDir = None,
) -> None:
    """Resume a stopped experiment."""
    from nni.experiment.client import ManagerClient
    from nni.experiment.environment import experiment_environment
    from nni.experiment.preflight import check_port
    from nni_proto.experiment.v1 import experiment_service_pb2

    messages = Messages()
    check_port(port)
    with ManagerClient(_services_up(messages)) as client:
        messages.info("Starting experiment...")
        answer = client.resume(
            experiment_service_pb2.ResumeExperimentRequest(
                experiment_id=_stopped_id(client, id, experiment_dir),
                port=port,
                experiment_directory=_absolute(experiment_dir),
                environment=experiment_environment(),
                interpreter=sys.executable,
                debug=debug,
            )
        )
        for warning in answer.warnings:
            messages.warning(warning)
        _started(messages, client, answer.experiment, answer.urls, foreground=foreground)


def view(
    *,
    id: RequiredId,  # noqa: A002 - the documented name of the argument
    port: Port = DEFAULT_PORT,
    foreground: Foreground = False,
    experiment_dir: ExperimentDir = None,
) -> None:
    """Open a stopped experiment for reading; close it with `nnictl stop`."""
    from nni.experiment.client import ManagerClient
    from nni.experiment.preflight import check_port

    messages = Messages()
    check_port(port)
    with ManagerClient(_services_up(messages)) as client:
        messages.info("Opening experiment...")
        answer = client.view(
            _stopped_id(client, id, experiment_dir),
            port=port,
            experiment_directory=_absolute(experiment_dir),
        )
        for warning in answer.warnings:
            messages.warning(warning)
        _started(messages, client, answer.experiment, answer.urls, foreground=foreground)


def _services_up(messages: Messages) -> Endpoint:
    from nni.experiment.endpoint import read_endpoint
    from nni.experiment.local_shape import ensure_local_shape
    from nni.version import __version__

    endpoint = read_endpoint()
    if endpoint is None:
        messages.info("Starting restful server...")
        endpoint = ensure_local_shape()
        messages.info("Successfully started Restful server!")
    elif endpoint.version != __version__:
        messages.warning(
            f"the services that are up have version {endpoint.version}, nnictl has {__version__}; "
            "to restart them run: nnictl down"
        )
    return endpoint


def _stopped_id(client: ManagerClient, word: str, directory: Path | None) -> str:
    """Return the id that ``word`` means; a folder from elsewhere may hold one unknown here."""
    if directory is not None:
        return word
    from nni.cli import selection

    known = [found.id for found in client.experiments(include_stopped=True)]
    return selection.one(word, [], known)


def _absolute(directory: Path | None) -> str:
    return "" if directory is None else str(directory.expanduser().resolve())


def _note_on_privacy(messages: Messages) -> None:
    """Print, if reading needs the token, which command gives the page's address with it."""
    from nni.experiment.endpoint import read_endpoint
    from nni.experiment.environment import services_are_elsewhere
    from nni.experiment.local_shape import reading_needs_token

    endpoint = None if services_are_elsewhere() else read_endpoint()
    if endpoint is not None and reading_needs_token(endpoint):
        messages.info(
            "Page and REST need the token, since other people can log in to this machine (or "
            "NNI_PRIVATE says so). The address with the token: nnictl webui url. "
            "To open reading to all users: nnictl down, then nnictl up --no-private"
        )


def _started(
    messages: Messages,
    client: ManagerClient,
    experiment: experiment_pb2.Experiment,
    urls: Sequence[str],
    *,
    foreground: bool,
) -> None:
    messages.info("Successfully started experiment!")
    messages.line(RULE)
    messages.line(f"The experiment id is {experiment.id}")
    messages.line("The Web UI urls are: " + "   ".join(urls))
    messages.line(RULE)
    _note_on_privacy(messages)
    messages.line("")
    messages.line("You can use these commands to get more information about the experiment")
    messages.line(RULE)
    messages.line("         commands                       description")
    for number, (command, meaning) in enumerate(_HINTS, start=1):
        messages.line(f"{number}. {command:<29}{meaning}")
    messages.line(RULE)
    messages.line(f"Command reference: {_DOCUMENTATION}")
    if experiment.directory:
        messages.save(Path(experiment.directory) / "log")
    if foreground:
        from nni.cli.foreground import stay

        raise typer.Exit(stay(client, experiment.id))
