"""`nnictl config show` and `nnictl webui url`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from nni.cli.options import Json, OptionalId
from nni.cli.output import echo, write_json
from nni_wire.page_login import login_code
from nni_wire.socket_owners import listening_socket

if TYPE_CHECKING:
    from nni.experiment.endpoint import Endpoint

config_app = typer.Typer(
    help="Print the configuration of an experiment, or convert a file.", no_args_is_help=True
)
webui_app = typer.Typer(help="Print the addresses of an experiment's page.", no_args_is_help=True)


@config_app.command("show")
def config_show(*, id: OptionalId = None, as_json: Json = False) -> None:  # noqa: A002 - documented
    """Print the current experiment: id, state, folder and configuration, as YAML."""
    from nni.cli.session import experiment
    from nni.experiment.config.yaml_file import to_yaml
    from nni.experiment.conversion import config_from_proto
    from nni.experiment.records import experiment_metadata

    with experiment(id) as (client, experiment_id):
        message = client.get(experiment_id).experiment
    shown = {
        **experiment_metadata(message),
        "config": config_from_proto(message.config).to_dict(),
    }
    if as_json:
        write_json(shown)
    else:
        echo(to_yaml(shown), end="")


@webui_app.command("url")
def webui_url(*, id: OptionalId = None, as_json: Json = False) -> None:  # noqa: A002 - documented
    """Print the addresses of the page of an experiment, and of the one with all experiments.

    The last line, opened once in a browser within 12 hours, lets the page change things, too, for
    a week. Keep it to yourself.
    """
    from nni.cli.session import experiment, manager
    from nni.experiment.errors import WrongStateError

    with manager(start=id is not None) as client:
        endpoint = client.endpoint
        all_url = endpoint.http.rstrip("/")
        if id is None and not client.experiments():
            if as_json:
                write_json([all_url])
            else:
                echo(f"All experiments (none is running): {_login_url(all_url, endpoint)}")
            return
    with experiment(id) as (client, experiment_id):
        urls = list(client.get(experiment_id).urls)
    if not urls:
        raise WrongStateError(
            f"experiment {experiment_id} has no page open; "
            f"open it with: nnictl view {experiment_id}"
        )
    if as_json:
        write_json(urls)
    else:
        echo("\n".join(urls))
        echo(f"All experiments: {all_url}")
        echo(f"To change things from the page, open {_login_url(urls[0], endpoint)}")


def _login_url(url: str, endpoint: Endpoint) -> str:
    """Return the address that lets the page at ``url`` change things.

    On this machine it holds a code that is valid at that socket for some hours: a program of
    another user on the port of a stopped experiment learns no token. Elsewhere TLS proves who
    listens.
    """
    token = endpoint.token
    if endpoint.remote is None:
        port = urlsplit(url).port or 80
        token = login_code(token, port, time.time(), listening_socket(port))
    return f"{url.rstrip('/')}/?token={token}"
