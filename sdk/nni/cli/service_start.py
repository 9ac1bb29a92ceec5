"""Start of the services of this machine, without the imports of other commands.

`nnictl up` without options runs this before typer is imported, which takes longer than all else
that the command does before the services start.
"""

from __future__ import annotations

from nni.cli.output import Messages, write_json
from nni.experiment.endpoint import Endpoint, read_endpoint
from nni.experiment.environment import ANSWER_S
from nni.experiment.errors import ServiceFailedError, UnreachableError
from nni.experiment.local_shape import check_local, ensure_local_shape, reading_needs_token


def start_services(
    port: int = 0, *, private: bool | None = None, durability: str = "", as_json: bool = False
) -> None:
    """Start the services unless they are up, and print their addresses.

    Args:
        port: of page and REST; 0: a free one.
        private: whether reading needs the token, too; `None`: the default of the machine.
        durability: `process` or `power`; empty: the default.
        as_json: whether JSON is printed.

    Raises:
        ExperimentError: they do not start, or those of another machine are chosen.
    """
    endpoint = read_endpoint()
    check_local(endpoint)
    was_up = endpoint is not None
    if endpoint is None:
        if port:
            from nni.experiment.preflight import check_port

            check_port(port)
        endpoint = ensure_local_shape(port, private=private, durability=durability)
    messages = Messages()
    if was_up:
        _warn_of_silence(endpoint, messages)
    if as_json:
        write_json({"http": endpoint.http, "grpc": endpoint.grpc, "wasUp": was_up})
        return
    if was_up and private is not None and reading_needs_token(endpoint) is not private:
        messages.warning("--private has no effect on services that are up; run: nnictl down")
    if was_up and durability:
        messages.warning("--durability has no effect on services that are up; run: nnictl down")
    messages.info("The services are up." if not was_up else "The services were up already.")
    messages.line(f"Page and REST: {endpoint.http}")
    messages.line(f"gRPC: {endpoint.grpc}")


def _warn_of_silence(endpoint: Endpoint, messages: Messages) -> None:
    """Warn if the manager of services that are up does not answer, as beside a hung supervisor."""
    from nni.experiment.rest import get_json

    try:
        get_json(f"{endpoint.http}/api/v1/nni/version", endpoint.token, ANSWER_S)
    except ServiceFailedError:
        return  # an error is an answer
    except UnreachableError as error:
        messages.warning(f"the manager does not answer ({error}); see: nnictl doctor")
