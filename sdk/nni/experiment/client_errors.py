"""Mapping of gRPC statuses to the errors of this library."""

from __future__ import annotations

import json
from typing import Final

import grpc

from nni.experiment.errors import (
    ConfigError,
    ExperimentError,
    NotFoundError,
    Problem,
    RefusedError,
    ServiceFailedError,
    UnreachableError,
    WrongStateError,
)
from nni_wire.metadata import ERROR_DETAILS_KEY

_ERROR_BY_STATUS: Final[dict[grpc.StatusCode, type[ExperimentError]]] = {
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: WrongStateError,
    grpc.StatusCode.FAILED_PRECONDITION: WrongStateError,
    grpc.StatusCode.ABORTED: ServiceFailedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: RefusedError,
    grpc.StatusCode.PERMISSION_DENIED: UnreachableError,
    grpc.StatusCode.UNAUTHENTICATED: UnreachableError,
    grpc.StatusCode.UNAVAILABLE: UnreachableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: UnreachableError,
    grpc.StatusCode.CANCELLED: UnreachableError,
}

_PASSING: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
    }
)
"""The same call may work later: the manager is restarted, or has changed."""


def is_passing(error: grpc.RpcError) -> bool:
    """Return whether the same call may work later: no connection, time-out, abort or cancel."""
    return _status(error) in _PASSING


def deadline_passed(error: grpc.RpcError) -> bool:
    """Return whether a call ended because its deadline had passed."""
    return _status(error) is grpc.StatusCode.DEADLINE_EXCEEDED


def _status(error: object) -> grpc.StatusCode | None:
    # All errors of real calls are `grpc.Call`s too; the stubs do not know that.
    return error.code() if isinstance(error, grpc.Call) else None


def translated(error: object) -> ExperimentError:
    """Return the exception of this library for a gRPC error, by status code and details.

    Use it once per boundary: `except grpc.RpcError as error: raise translated(error) from error`.
    """
    if not isinstance(error, grpc.Call):
        return ServiceFailedError(str(error))
    code = error.code()
    message = error.details() or code.name
    facts = error_facts(error)
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return _config_error(message, facts)
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED} and not facts:
        message = f"the manager does not answer ({message}); see: nnictl doctor"
    return _ERROR_BY_STATUS.get(code, ServiceFailedError)(message, facts)


def _config_error(message: str, facts: dict[str, str]) -> ConfigError:
    """Return a ConfigError for INVALID_ARGUMENT, its message split in field and rule."""
    field = facts.get("field", "")
    rule = message.removeprefix(field).strip() if field else message
    error = ConfigError([Problem(field, rule)])
    error.args = (message,)
    error.facts = facts
    return error


def error_facts(error: grpc.Call) -> dict[str, str]:
    """Return the details in a gRPC error's trailing metadata, as texts; {} if none are readable."""
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_DETAILS_KEY:
            try:
                details = json.loads(value)
            except ValueError:
                return {}
            if isinstance(details, dict):
                return {str(name): str(fact) for name, fact in details.items()}
    return {}
