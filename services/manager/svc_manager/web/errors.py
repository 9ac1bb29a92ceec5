"""The one table from errors of the manager to HTTP answers, and the shape of an error's body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from svc_common.errors import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    ServiceError,
    UnauthenticatedError,
    UnavailableError,
)
from svc_manager.web.records.encoding import to_json_bytes

STATUS_BY_ERROR: Final[tuple[tuple[type[ServiceError], int], ...]] = (
    (InvalidArgumentError, 400),
    (UnauthenticatedError, 401),
    (PermissionDeniedError, 403),
    (NotFoundError, 404),
    (AlreadyExistsError, 409),
    (FailedPreconditionError, 409),
    (AbortedError, 409),
    (ResourceExhaustedError, 429),
    (UnavailableError, 503),
)
"""The first class that fits decides; any other error of a service is a 500."""


class UnsupportedTypeError(ServiceError):
    """A changing request whose body is not declared as JSON."""


class BodyTooLargeError(ServiceError):
    """A body longer than its route reads.

    Args:
        limit_bytes: longest body that the route reads.
    """

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the body must have at most {limit_bytes:,} bytes")
        self.limit_bytes = limit_bytes


class SlowBodyError(ServiceError):
    """A body that does not come to its end.

    Args:
        limit_s: longest time that is waited for it.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the body must have come within {limit_s:g} s")


def status_of(error: ServiceError) -> int:
    """Return the HTTP status that tells a client of ``error``."""
    if isinstance(error, BodyTooLargeError):
        return 413
    if isinstance(error, SlowBodyError):
        return 408
    if isinstance(error, UnsupportedTypeError):
        return 415
    return next((status for kind, status in STATUS_BY_ERROR if isinstance(error, kind)), 500)


def error_response(error: ServiceError) -> Response:
    """Return the answer that a client gets for ``error``: `{"error": text}` and its facts."""
    wait_s = error.facts.get("retry_after_s")
    headers = {"Retry-After": wait_s} if wait_s else None
    return text_response(status_of(error), error.message, facts=error.facts, headers=headers)


def text_response(
    status: int,
    message: str,
    *,
    facts: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error answer; ``facts`` stand beside the text, for programs."""
    body: dict[str, object] = {"error": message}
    if facts:
        body["facts"] = dict(facts)
    return Response(
        to_json_bytes(body), status_code=status, media_type="application/json", headers=headers
    )
