"""What is noted of every request of REST: whom its log lines concern, how it was answered."""

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
"""Names a request in our logs; what the client sends is taken, and told back."""
_LIMIT_CHARACTERS: Final = 64


@dataclass(slots=True)
class Noted:
    """One request while it is being answered."""

    request_id: str
    status: int = 500
    """As long as nothing was answered."""

    def answered(self, answer: Response) -> None:
        """Take note of the answer, and tell the client its request id."""
        self.status = answer.status_code
        answer.headers.setdefault(REQUEST_ID_HEADER, self.request_id)


@contextmanager
def noted_request(
    instruments: Instruments | None, route: Route, request: Request
) -> Iterator[Noted]:
    """Bind a request's ids to the log lines in the block, and count it at its end.

    Args:
        instruments: where it is counted; None: nowhere.
        route: that answers it.
        request: of Starlette.
    """
    begun_s = time.perf_counter()
    headers = request.headers
    given = headers.get(REQUEST_ID_HEADER) or headers.get("idempotency-key") or ""
    clean = "".join(letter for letter in given if letter.isascii() and letter.isprintable())
    noted = Noted(clean[:_LIMIT_CHARACTERS] or secrets.token_hex(4))
    facts = {
        name: request.path_params[key][:_LIMIT_CHARACTERS]
        for name, key in (("experiment", "experiment_id"), ("trial", "trial_id"))
        if key in request.path_params
    }
    try:
        with bound(request=noted.request_id, **facts):
            yield noted
    finally:
        if instruments is not None:
            instruments.requests.inc(route.method, route.path, str(noted.status))
            instruments.request_seconds.observe(time.perf_counter() - begun_s, route.path)
