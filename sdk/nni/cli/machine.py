"""`nnictl up` and `down`: the services of this machine."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nni.cli.options import Json
from nni.cli.output import Messages
from nni.cli.service_start import start_services


class Durability(StrEnum):
    """Failures that the state of experiments survives: kills of processes, or power cuts, too."""

    PROCESS = "process"
    POWER = "power"


def register(app: typer.Typer) -> None:
    """Add the commands `up` and `down` to ``app``."""
    app.command("up")(up)
    app.command("down")(down)


def up(
    *,
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", min=0, max=65535, help="Port of page and REST; 0: a free one."
        ),
    ] = 0,
    private: Annotated[
        bool | None,
        typer.Option(
            "--private/--no-private",
            show_default=False,
            help="Whether reading over REST and the page needs the token, too. Default: "
            "NNI_PRIVATE, else yes where other people can log in to this machine.",
        ),
    ] = None,
    durability: Annotated[
        Durability | None,
        typer.Option(
            show_default=False,
            help="What the state of experiments survives: the kill of any process, or a cut of "
            "power, too, at a little throughput. Default: NNI_DURABILITY, else power.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Start the services of this machine."""
    chosen = "" if durability is None else durability.value
    start_services(port, private=private, durability=chosen, as_json=as_json)


def down() -> None:
    """Stop all experiments and end the services of this machine."""
    from nni.cli.stop import stop_together
    from nni.experiment.client import ManagerClient
    from nni.experiment.endpoint import read_endpoint
    from nni.experiment.errors import ExperimentError
    from nni.experiment.local_shape import check_local, stop_local_shape

    messages = Messages()
    endpoint = read_endpoint()
    check_local(endpoint)
    if endpoint is None:
        messages.info("The services are not up.")
        return
    try:
        with ManagerClient(endpoint) as client:
            stop_together(client, [found.id for found in client.experiments()], messages)
    except ExperimentError as error:
        # Services that do not answer must still end; what runs goes on when they are up again.
        messages.warning(f"not every experiment could be stopped: {error}")
    stop_local_shape()
    messages.info("The services are down.")
