"""HTTP responses of service errors."""

from __future__ import annotations

import json

import pytest

from svc_common.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    LostOwnershipError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    ServiceError,
    UnauthenticatedError,
    UnavailableError,
)
from svc_manager.ports import PortTakenError
from svc_manager.web.errors import BodyTooLargeError, UnsupportedTypeError, error_response

LOST = LostOwnershipError("exp", expected_sequence=1, found_sequence=2, found_epoch=3)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidArgumentError("field", "must be >= 1", 0), 400),
        (UnauthenticatedError("who"), 401),
        (PermissionDeniedError("no"), 403),
        (NotFoundError("trial", "x"), 404),
        (AlreadyExistsError("trial", "x"), 409),
        (FailedPreconditionError("not now"), 409),
        (PortTakenError(8080, "experiment abc"), 409),
        (LOST, 409),
        (BodyTooLargeError(5), 413),
        (UnsupportedTypeError("json"), 415),
        (ResourceExhaustedError("full"), 429),
        (UnavailableError("away"), 503),
        (ServiceError("odd"), 500),
    ],
)
def test_every_error_has_its_status_text_and_facts(error: ServiceError, status: int) -> None:
    answer = error_response(error)

    assert answer.status_code == status
    body = json.loads(bytes(answer.body))
    assert body["error"] == error.message
    assert body.get("facts", {}) == error.facts
