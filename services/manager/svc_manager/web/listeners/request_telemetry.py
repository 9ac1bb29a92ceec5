"""Telemetry of REST requests: ids in log lines, counter and latency by route."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from svc_common.logs import bound
from svc_manager.telemetry.metrics import Instruments
from svc_manager.web.route import Route

REQUEST_ID_HEADER: Final = "X-Request-Id"
"""Header with the id of a request: taken from the client or drawn, logged and returned."""
_LIMIT_CHARACTERS: Final = 64


@dataclass(slots=True)
class RequestRecord:
    """Id and HTTP status of one request, for its log lines and metrics."""

    request_id: str
    status: int = 500
    """HTTP status; the default holds until there is a response."""

    def complete(self, response: Response) -> None:
        """Record the status of the response and add the request id to its headers."""
        self.status = response.status_code
        response.headers.setdefault(REQUEST_ID_HEADER, self.request_id)


@contextmanager
def measured_request(
    instruments: Instruments | None, route: Route, request: Request
) -> Iterator[RequestRecord]:
    """Yield a request's record, its id bound to log lines; then count it with its duration.

    Args:
        instruments: metrics to update; None: no metrics.
        route: the route of the request.
        request: the request.
    """
    begun_s = time.perf_counter()
    headers = request.headers
    given = headers.get(REQUEST_ID_HEADER) or headers.get("idempotency-key") or ""
    clean = "".join(letter for letter in given if letter.isascii() and letter.isprintable())
    record = RequestRecord(clean[:_LIMIT_CHARACTERS] or secrets.token_hex(4))
    facts = {
        name: request.path_params[key][:_LIMIT_CHARACTERS]
        for name, key in (("experiment", "experiment_id"), ("trial", "trial_id"))
        if key in request.path_params
    }
    try:
        with bound(request=record.request_id, **facts):
            yield record
    finally:
        if instruments is not None:
            instruments.requests.inc(route.method, route.path, str(record.status))
            instruments.request_seconds.observe(time.perf_counter() - begun_s, route.path)
