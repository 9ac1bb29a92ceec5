"""Table of HTTP statuses by service error, and the JSON body of an error response."""

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
"""The first matching class decides; any other `ServiceError` is a 500."""


class UnsupportedTypeError(ServiceError):
    """Error: a changing request has a Content-Type other than JSON."""


class BodyTooLargeError(ServiceError):
    """Error of a request whose body is over the size limit of its route; becomes HTTP 413.

    Args:
        limit_bytes: size limit of the route.
    """

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the body must have at most {limit_bytes:,} bytes")
        self.limit_bytes = limit_bytes


class SlowBodyError(ServiceError):
    """Error of a request whose body did not arrive within the time limit; becomes HTTP 408.

    Args:
        limit_s: time limit, in seconds.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the body must arrive within {limit_s:g} s")


def status_of(error: ServiceError) -> int:
    """Return the HTTP status for the class of a `ServiceError`; 500 if it is not in the table."""
    if isinstance(error, BodyTooLargeError):
        return 413
    if isinstance(error, SlowBodyError):
        return 408
    if isinstance(error, UnsupportedTypeError):
        return 415
    return next((status for kind, status in STATUS_BY_ERROR if isinstance(error, kind)), 500)


def error_response(error: ServiceError) -> Response:
    """Return the JSON error response of a `ServiceError`: status, message, facts, Retry-After."""
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
    """Return an HTTP response with the JSON `{"error": message, "facts": facts}`."""
    body: dict[str, object] = {"error": message}
    if facts:
        body["facts"] = dict(facts)
    return Response(
        to_json_bytes(body), status_code=status, media_type="application/json", headers=headers
    )
