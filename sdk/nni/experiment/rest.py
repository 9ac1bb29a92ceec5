"""Plain GETs of the documented REST paths on this machine, never through a proxy."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any, Final

from nni.experiment.environment import ANSWER_S, remote_settings
from nni.experiment.errors import ServiceFailedError, UnreachableError
from nni.experiment.tls import tls_context
from nni_wire.local_peers import check_owner, is_loopback


class _OwnConnection(http.client.HTTPConnection):
    """HTTP connection that raises if another user of this machine owns the port."""

    def connect(self) -> None:
        """Connect; on loopback, raise ForeignOwnerError if another user owns the port."""
        super().connect()
        if is_loopback(self.host):
            check_owner(self.port, host=self.host)


class _OwnHandler(urllib.request.HTTPHandler):
    """Handler of `http:` that opens `_OwnConnection`s."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a request over `_OwnConnection`, which refuses a port of another user."""
        return self.do_open(_OwnConnection, req)


_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}), _OwnHandler)


def get_json(
    url: str,
    token: str = "",
    timeout_s: float = ANSWER_S,
    tls: ssl.SSLContext | None = None,
) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON that HTTP GET of ``url`` answers; raise an ExperimentError on failure.

    Args:
        url: `http://127.0.0.1:<port>/...`, or of the services that `NNI_ENDPOINT` names.
        token: shown to the service if it is not empty.
        timeout_s: for the connection and for each read.
        tls: how HTTPS is spoken; `None`: as the settings of those services say.

    Raises:
        UnreachableError: nothing listens there, or not with HTTP and JSON.
        ServiceFailedError: the answer is an error; its text is repeated.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own addresses
    try:
        with _opener(url, tls).open(request, timeout=timeout_s) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode("utf-8", "replace")
        raise ServiceFailedError(f"{url}: {_error_text(text)}") from error
    except (OSError, ValueError) as error:
        raise UnreachableError(f"nothing answers at {url}: {error}") from error


def _opener(url: str, tls: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    if not url.startswith("https:"):
        return _OPENER
    settings = remote_settings()
    if tls is None and settings is not None:
        tls = tls_context(settings)
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=tls))


def _error_text(text: str) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text[:200]
