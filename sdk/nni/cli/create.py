"""`nnictl create`, `resume` and `view`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from nni.cli.options import (
    Debug,
    ExperimentDir,
    Foreground,
    Json,
    OnExitOption,
    Port,
    RequiredId,
    UrlPrefix,
)
from nni.cli.output import RULE, Messages, write_json

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni.experiment.config.search_config import SearchConfig
    from nni.experiment.endpoint import Endpoint
    from nni.experiment.exit_signals import OnExit
    from nni_proto.experiment.v1 import experiment_pb2
    from nni_proto.experiment.v1 import experiment_service_pb2 as pb

    _Opened: TypeAlias = (
        pb.CreateExperimentResponse | pb.ResumeExperimentResponse | pb.ViewExperimentResponse
    )

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


def create(  # noqa: PLR0913 - documented options
    *,
    config: Annotated[
        Path,
        typer.Option(
            "--config", "-c", show_default=False, help="YAML file; one of NNI 1.x is converted."
        ),
    ],
    port: Port = None,
    debug: Debug = False,
    foreground: Foreground = False,
    on_exit: OnExitOption = "stop",
    url_prefix: UrlPrefix = "",
    as_json: Json = False,
    warm_start: Annotated[
        list[str] | None,
        typer.Option(
            "--warm-start",
            metavar="ID",
            show_default=False,
            help="Id of an earlier experiment on a related task, or a file of its exported "
            "results; the tuner learns its results by rank. May be repeated.",
        ),
    ] = None,
    no_check: Annotated[
        bool,
        typer.Option("--no-check", help="Start without asking the platforms whether they accept."),
    ] = False,
) -> None:
    """Create an experiment and start it."""
    from nni.experiment.annotated_code import converted_code
    from nni.experiment.client import ManagerClient
    from nni.experiment.config import ExperimentConfig
    from nni.experiment.conversion import config_to_proto
    from nni.experiment.environment import experiment_environment
    from nni.experiment.errors import RefusedError
    from nni.experiment.exit_signals import deferred_interrupt, signals_as_exit
    from nni.experiment.preflight import check_start, on_free_port, secret_in_code

    if as_json and foreground:
        raise RefusedError("--json and --foreground exclude each other; give one of them")
    messages = Messages(quiet=as_json)
    experiment_config = ExperimentConfig.load(config, warn=messages.warning)
    if debug:
        experiment_config.debug = True
    if warm_start:
        experiment_config.search = _warm_started(experiment_config.search, warm_start)
    check_start(experiment_config, port or 0)
    if warning := secret_in_code(experiment_config, config):
        messages.warning(warning)
    with ExitStack() as stack:
        stack.enter_context(signals_as_exit())
        with converted_code(experiment_config) as runnable_config:
            message = config_to_proto(runnable_config)
            client = stack.enter_context(ManagerClient(_services_up(messages)))
            messages.info("Setting local config...")
            environment = experiment_environment()
            messages.info("Successfully set local config!")
            messages.info("Starting experiment...")
            with deferred_interrupt() as interruption:
                answer = on_free_port(
                    port,
                    lambda number: client.create(
                        message,
                        port=number,
                        url_prefix=url_prefix.strip("/"),
                        environment=environment,
                        interpreter=sys.executable,
                        skip_platform_check=no_check,
                    ),
                )
                if interruption.came:
                    _stop_new(messages, client, answer.experiment.id)
                    raise typer.Exit(interruption.exit_code)
                if as_json:
                    _write_json(client, answer)
                _name(messages, client, answer)
        for warning in answer.warnings:
            messages.warning(warning)
        _started(messages, client, answer.experiment, foreground=foreground, on_exit=on_exit)


def _warm_started(search: SearchConfig | None, sources: list[str]) -> SearchConfig:
    """Return the section `search` with related experiments to learn from; raise RefusedError."""
    from nni.experiment.config.search_config import SearchConfig
    from nni.experiment.errors import RefusedError

    try:
        return (search or SearchConfig()).with_related(sources)
    except ValueError as error:
        raise RefusedError(str(error)) from error


def _write_json(client: ManagerClient, answer: pb.CreateExperimentResponse) -> None:
    """Write id, addresses, port, folder and warnings of a new experiment as JSON."""
    experiment = answer.experiment
    write_json(
        {
            "id": experiment.id,
            "urls": client.page_urls(answer.urls, experiment.id),
            "port": experiment.port or None,
            "directory": experiment.directory,
            "warnings": list(answer.warnings),
        }
    )


def _stop_new(messages: Messages, client: ManagerClient, experiment_id: str) -> None:
    """Stop an experiment whose creation was interrupted, and print how to delete it."""
    messages.warning(
        f"Interrupted. Experiment {experiment_id}, just created, is stopped; to delete it: "
        f"nnictl experiment delete {experiment_id}"
    )
    client.stop(experiment_id)


def resume(
    *,
    id: RequiredId,  # noqa: A002 - the documented name of the argument
    port: Port = None,
    debug: Debug = False,
    foreground: Foreground = False,
    on_exit: OnExitOption = "stop",
    experiment_dir: ExperimentDir = None,
) -> None:
    """Resume a stopped experiment."""
    from nni.experiment.client import ManagerClient
    from nni.experiment.environment import experiment_environment
    from nni.experiment.preflight import check_code_folder, check_port, on_free_port
    from nni_proto.experiment.v1 import experiment_service_pb2

    messages = Messages()
    check_port(port or 0)
    with ManagerClient(_services_up(messages)) as client:
        messages.info("Starting experiment...")
        chosen = _stopped_id(client, id, experiment_dir)
        if experiment_dir is None:
            check_code_folder(client.get(chosen).experiment.config)
        request = experiment_service_pb2.ResumeExperimentRequest(
            experiment_id=chosen,
            experiment_directory=_absolute(experiment_dir),
            environment=experiment_environment(),
            interpreter=sys.executable,
            debug=debug,
        )

        def resume_on(number: int) -> experiment_service_pb2.ResumeExperimentResponse:
            attempt = experiment_service_pb2.ResumeExperimentRequest()
            attempt.CopyFrom(request)  # each gets a request id of its own
            attempt.port = number
            return client.resume(attempt)

        with option_named(experiment_dir):
            answer = on_free_port(port, resume_on)
        for warning in answer.warnings:
            messages.warning(warning)
        _name(messages, client, answer)
        _started(messages, client, answer.experiment, foreground=foreground, on_exit=on_exit)


def view(
    *,
    id: RequiredId,  # noqa: A002 - the documented name of the argument
    port: Port = None,
    foreground: Foreground = False,
    on_exit: OnExitOption = "stop",
    experiment_dir: ExperimentDir = None,
) -> None:
    """Open a stopped experiment for reading; close it with `nnictl stop`."""
    from nni.experiment.client import ManagerClient
    from nni.experiment.preflight import check_port, on_free_port

    messages = Messages()
    check_port(port or 0)
    with ManagerClient(_services_up(messages)) as client:
        messages.info("Opening experiment...")
        chosen = _stopped_id(client, id, experiment_dir)
        with option_named(experiment_dir):
            answer = on_free_port(
                port,
                lambda number: client.view(
                    chosen, port=number, experiment_directory=_absolute(experiment_dir)
                ),
            )
        for warning in answer.warnings:
            messages.warning(warning)
        _name(messages, client, answer)
        _started(messages, client, answer.experiment, foreground=foreground, on_exit=on_exit)


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
    """Return the id that ``word`` means among all experiments; with a folder ``word`` itself."""
    if directory is not None:
        return word
    from nni.cli import selection

    known = [found.id for found in client.experiments(include_stopped=True)]
    return selection.one(word, [], known)


@contextmanager
def option_named(directory: Path | None) -> Iterator[None]:
    """Raise the services' errors about a given folder as RefusedError that names its option.

    Raises:
        RefusedError: the folder is not that of the experiment.
    """
    from nni.experiment.errors import ConfigError, NotFoundError, RefusedError

    try:
        yield
    except (ConfigError, NotFoundError) as error:
        field = "experiment_directory"
        about_folder = error.facts.get("field") == field or "event log" in error.facts.get(
            "kind", ""
        )
        if directory is None or not about_folder:
            raise
        text = str(error).replace(field, "--experiment_dir", 1)
        raise RefusedError(
            f"{text}; give the folder that has db/events.log, named by the experiment's id"
        ) from error


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


def _name(messages: Messages, client: ManagerClient, answer: _Opened) -> None:
    """Print id and addresses of an experiment that is open now."""
    messages.info("Successfully started experiment!")
    messages.line(RULE)
    messages.line(f"The experiment id is {answer.experiment.id}")
    urls = client.page_urls(answer.urls, answer.experiment.id)
    messages.line("The Web UI urls are: " + "   ".join(urls))
    messages.line(RULE)


def _started(
    messages: Messages,
    client: ManagerClient,
    experiment: experiment_pb2.Experiment,
    *,
    foreground: bool,
    on_exit: OnExit,
) -> None:
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

        raise typer.Exit(stay(client, experiment.id, on_exit))
