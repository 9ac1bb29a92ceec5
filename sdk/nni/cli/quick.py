"""Fast path of `nnictl` for commands that scripts repeat, without heavy imports.

Importing typer and grpc takes longer than the answer. Here stands nothing but the usual case;
whatever else there is (options, no services, several experiments, an error) is left to the ordinary
command, which says it in words. So this gives exactly what that would write, or nothing.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nni.cli.output import json_text
from nni.experiment.environment import nni_home, services_are_elsewhere
from nni_wire.local_peers import check_owner

_API: Final = "/api/v1/nni"
_TIMEOUT_S: Final = 2.0
_LOOPBACK: Final = "127.0.0.1"


def quick_answer(words: Sequence[str]) -> str | None:
    """Return the output of `experiment show` by one REST call; None if the CLI has to run.

    Args:
        words: arguments of `nnictl`.
    """
    if tuple(words[:2]) != ("experiment", "show") or len(words) > 3:  # noqa: PLR2004 - one id
        return None
    if services_are_elsewhere():
        return None
    try:
        return _show(words[2:])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _show(ids: Sequence[str]) -> str | None:
    endpoint = json.loads((nni_home() / "endpoint.json").read_bytes())
    chosen = ids[0] if ids else _only_running(endpoint)
    if chosen is None or not (chosen.isascii() and chosen.isalnum()):
        return None
    profile = _get(endpoint, f"{_API}/experiments/{chosen}/experiment")
    if profile is None or profile["id"] != chosen:
        return None
    return json_text(profile) + "\n"


def _only_running(endpoint: Mapping[str, Any]) -> str | None:
    found = _get(endpoint, f"{_API}/experiments-info?all=false")
    return str(found[0]["id"]) if found is not None and len(found) == 1 else None


def _get(endpoint: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the response to a GET; `None` for an error, or for services elsewhere.

    `http.client` would cost a third of the time that the whole command may take.
    """
    scheme, _, address = str(endpoint["http"]).partition("://")
    host, _, port = address.partition(":")
    if (scheme, host) != ("http", _LOOPBACK):
        return None
    request = (
        f"GET {path} HTTP/1.0\r\nHost: {address}\r\n"
        f"Authorization: Bearer {endpoint['token']}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection:
        check_owner(int(port), host=host)
        connection.sendall(request.encode("ascii"))
        pieces = []
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    return json.loads(body) if head.split(b" ", 2)[1:2] == [b"200"] else None
