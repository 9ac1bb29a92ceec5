"""`nnictl stop`: end experiments."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nni.cli.completion import experiment_ids
from nni.cli.output import Messages

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient

_AT_ONCE: Final = 8


def register(app: typer.Typer) -> None:
    """Add the command `stop` to ``app``."""
    app.command("stop")(stop)


def stop(
    *,
    id: Annotated[  # noqa: A002 - the documented name of the argument
        str | None,
        typer.Argument(
            metavar="[ID]",
            show_default=False,
            help="An id, the start of one, or a start and '*' for all that have it. "
            "Default: the one that is running.",
            autocompletion=experiment_ids,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", "-p", min=1, max=65535, show_default=False, help="The one on this port."
        ),
    ] = None,
    all: Annotated[  # noqa: A002 - the documented name of the option
        bool, typer.Option("--all", "-a", help="All experiments that run.")
    ] = False,
) -> None:
    """Stop an experiment: its trials are cancelled and its port is free again."""
    from nni.cli import selection
    from nni.cli.session import manager, services_wanted

    messages = Messages()
    if all and not services_wanted():
        messages.warning("There is no experiment running.")
        return
    with manager() as client:
        running = {found.id: found.port for found in client.experiments()}
        chosen = selection.to_stop(id, port=port, everything=all, running=running)
        stop_together(client, chosen, messages)
        if chosen:
            messages.info("Stop experiment success.")
        else:
            messages.warning("There is no experiment running.")


def stop_together(client: ManagerClient, ids: Sequence[str], messages: Messages) -> None:
    """Stop experiments at the same time and wait for all; raise after that if one failed.

    Raises:
        ExperimentError: one could not be stopped; the others are stopped all the same.
    """
    for experiment_id in ids:
        messages.info(f"Stopping experiment {experiment_id}")
    with ThreadPoolExecutor(_AT_ONCE, "stop") as threads:
        for stopped in [threads.submit(client.stop, experiment_id) for experiment_id in ids]:
            stopped.result()
