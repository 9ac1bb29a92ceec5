"""gRPC channels to other services, and the mapping of statuses to errors."""

import json
from collections.abc import Sequence
from typing import Final, TypeAlias

import grpc
import grpc.aio

from nni_wire.limits import grpc_channel_options
from nni_wire.metadata import ERROR_DETAILS_KEY, bearer
from svc_common import errors
from svc_common.access.transport import PLAIN, Transport, host_of

CALL_TIMEOUT_S: Final = 30.0
"""Default deadline of a call; every remote call has one."""

_LOOPBACK: Final = ("127.", "localhost:", "[::1]:")
UNIX_SCHEME: Final = "unix:"
"""Start of the address of a Unix socket."""
_SOCKET_RETRY_MS: Final = 2000
"""Longest pause between attempts to reach a socket: a forward that was cut for minutes is used soon
after it is back. The default is two minutes."""

Metadata: TypeAlias = Sequence[tuple[str, str]]

_ERROR_BY_STATUS: Final[dict[grpc.StatusCode, type[errors.ServiceError]]] = {
    grpc.StatusCode.UNAUTHENTICATED: errors.UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: errors.PermissionDeniedError,
    grpc.StatusCode.FAILED_PRECONDITION: errors.FailedPreconditionError,
    grpc.StatusCode.ABORTED: errors.AbortedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhaustedError,
    grpc.StatusCode.UNAVAILABLE: errors.UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.UnavailableError,
}
"""Statuses whose error is built of message and facts; other errors need their arguments."""


def open_channel(
    address: str, transport: Transport = PLAIN, tls_name: str = ""
) -> grpc.aio.Channel:
    """Open a gRPC channel to a service with TLS as configured and our message size limits.

    Args:
        address: `host:port`, or `unix:<path>` for a Unix socket, which needs no encryption.
        transport: TLS settings.
        tls_name: name in the certificate of the server; empty: that of the transport, or of the
            address.

    Raises:
        FailedPreconditionError: calls to another machine would be plain text.
        InvalidArgumentError: a file of the transport cannot be used.
    """
    options: list[tuple[str, int | str]] = [*grpc_channel_options()]
    if address.startswith(_LOOPBACK):
        # A proxy of the user's environment cannot reach this machine's loopback.
        options.append(("grpc.enable_http_proxy", 0))
    if tls_name or transport.server_name:
        options.append(("grpc.ssl_target_name_override", tls_name or transport.server_name))
    if address.startswith(UNIX_SCHEME):
        options.append(("grpc.max_reconnect_backoff_ms", _SOCKET_RETRY_MS))
        return grpc.aio.insecure_channel(address, options=options)
    encryption = transport.grpc_channel_credentials()
    transport.check_peer(address, host_of(address), encrypted=encryption is not None)
    if encryption is None:
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, encryption, options=options)


def token_metadata(token: str | None) -> Metadata:
    """Return the metadata of calls with this token; None: the service requires none."""
    return () if token is None else bearer(token)


def service_error(error: grpc.aio.AioRpcError) -> errors.ServiceError:
    """Convert a failed call's status and details to the `ServiceError` that the server raised.

    Use it at the boundary: `except AioRpcError as error: raise service_error(error) from error`.
    """
    facts = _facts(error)
    message = error.details() or error.code().name
    code = error.code()
    if code is grpc.StatusCode.INVALID_ARGUMENT and "field" in facts:
        return errors.InvalidArgumentError.restored(message, facts)
    if code is grpc.StatusCode.NOT_FOUND and "kind" in facts:
        return errors.NotFoundError(facts["kind"], facts.get("id", ""))
    if code is grpc.StatusCode.ALREADY_EXISTS and "kind" in facts:
        return errors.AlreadyExistsError(facts["kind"], facts.get("id", ""))
    if code is grpc.StatusCode.DATA_LOSS and "key" in facts:
        return errors.DataLossError(
            facts["key"], facts.get("expected_sha256", ""), facts.get("found_sha256", "")
        )
    return _ERROR_BY_STATUS.get(code, errors.ServiceError)(message, facts)


def _facts(error: grpc.aio.AioRpcError) -> dict[str, str]:
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_DETAILS_KEY:
            try:
                details = json.loads(value)
            except ValueError:
                return {}
            if isinstance(details, dict):
                return {str(name): str(fact) for name, fact in details.items() if name != "type"}
    return {}
