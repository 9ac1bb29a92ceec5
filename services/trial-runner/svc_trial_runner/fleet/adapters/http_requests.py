"""Requests over HTTP to a platform's REST API, each on a connection of its own."""

import http.client
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

LIMIT_S: Final = 30.0
"""Longest wait for a connection or for more of a response."""
REDIRECTIONS: Final = 300
"""Lowest status of HTTP that is no success."""
CLIENT_ERRORS: Final = 400
SERVER_ERRORS: Final = 500
TOO_MANY: Final = 429
NOT_FOUND: Final = 404


def exchange(
    address: str,
    method: str,
    target: str,
    body: bytes | None,
    headers: Mapping[str, str],
    limit_bytes: int,
) -> tuple[int, bytes]:
    """Send a request, return status and body, cut at a limit; follow no redirection. Blocks.

    Redirections are returned, not followed, so that credentials go to the host of the section
    only. Certificates are checked.

    Args:
        address: `https://host:port`, or with `http://` for a server without TLS.
        method: of HTTP.
        target: path and query.
        body: None: none.
        headers: of the request.
        limit_bytes: a longer body is cut.

    Raises:
        OSError: the server cannot be reached.
        http.client.HTTPException: it does not speak HTTP.
    """
    connection = _connection(address)
    try:
        connection.request(method, target, body, dict(headers))
        response = connection.getresponse()
        return response.status, response.read(limit_bytes)
    finally:
        connection.close()


def _connection(address: str) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=LIMIT_S)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, parts.port, timeout=LIMIT_S, context=context)
