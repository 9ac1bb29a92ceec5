"""Channels, and errors restored from statuses."""

from __future__ import annotations

import json

import grpc
import grpc.aio
import pytest

from nni_wire.metadata import ERROR_DETAILS_KEY
from svc_common import errors
from svc_common.access.transport import Transport
from svc_common.rpc.client import open_channel, service_error, token_metadata


def refused(code: grpc.StatusCode, message: str, details: bytes | None) -> grpc.aio.AioRpcError:
    trailing = grpc.aio.Metadata()
    if details is not None:
        trailing.add(ERROR_DETAILS_KEY, details)
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, message)


def test_token_is_a_bearer_token() -> None:
    assert dict(token_metadata("secret")) == {"authorization": "Bearer secret"}
    assert token_metadata(None) == ()


async def test_plain_text_to_another_machine_is_refused() -> None:
    with pytest.raises(errors.FailedPreconditionError, match="manager:7501"):
        open_channel("manager:7501")

    await open_channel("manager:7501", Transport(insecure=True)).close()
    await open_channel("127.0.0.1:7501").close()
    await open_channel("unix:/run/nni/manager.sock").close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, errors.UnauthenticatedError),
        (grpc.StatusCode.PERMISSION_DENIED, errors.PermissionDeniedError),
        (grpc.StatusCode.FAILED_PRECONDITION, errors.FailedPreconditionError),
        (grpc.StatusCode.ABORTED, errors.AbortedError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.ResourceExhaustedError),
        (grpc.StatusCode.UNAVAILABLE, errors.UnavailableError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.UnavailableError),
        (grpc.StatusCode.INTERNAL, errors.ServiceError),
        (grpc.StatusCode.NOT_FOUND, errors.ServiceError),
        (grpc.StatusCode.INVALID_ARGUMENT, errors.ServiceError),
    ],
)
@pytest.mark.parametrize("details", [None, b"no JSON", b"[]"])
def test_status_of_a_foreign_server_is_mapped_by_its_code(
    code: grpc.StatusCode, kind: type[errors.ServiceError], details: bytes | None
) -> None:
    error = service_error(refused(code, "it failed", details))

    assert type(error) is kind
    assert (error.message, error.facts) == ("it failed", {})


def test_facts_are_strings_without_the_class() -> None:
    details = json.dumps({"type": "AbortedError", "attempt": 2}).encode()

    error = service_error(refused(grpc.StatusCode.ABORTED, "again", details))

    assert error.facts == {"attempt": "2"}


def test_status_without_a_message_shows_its_name() -> None:
    error = service_error(refused(grpc.StatusCode.UNAVAILABLE, "", None))

    assert error.message == "UNAVAILABLE"
