"""Authentication of callers by bearer token or client certificate."""

import time
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from svc_common.access.audit import AuditRecord, AuditTrail
from svc_common.access.failure_limit import FailureLimit
from svc_common.access.keyring import Keyring
from svc_common.access.roles import Caller
from svc_common.errors import ResourceExhaustedError, UnauthenticatedError

UNAUTHENTICATED: Final = "UNAUTHENTICATED"
"""Outcome of a call with unknown credentials."""


class Authenticator:
    """Authenticator of callers by token, certificate or cookie, with limit and audit of failures.

    Args:
        keyring: finds callers by their credentials.
        trail: receives the refusals; its users add the audited calls.
        limit: limits wrong credentials per address.
        now_s: returns the monotonic time in seconds.
    """

    def __init__(
        self,
        keyring: Keyring,
        trail: AuditTrail,
        limit: FailureLimit | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keyring = keyring
        self.trail = trail
        self._limit = limit or FailureLimit()
        self._now_s = now_s

    @classmethod
    def of_token(cls, token: str) -> "Authenticator":
        """Return an authenticator that accepts one token and writes no file."""
        return cls(Keyring(token), AuditTrail())

    def identify(self, address: str, token: str, common_name: str, what: str) -> Caller:
        """Return the caller of credentials, else raise; count, limit and audit wrong ones.

        Args:
            address: of the caller, without port.
            token: bearer token; empty: none was sent.
            common_name: of a client certificate that TLS has verified; empty: none. A token has
                precedence.
            what: the method or route, for the audit trail.

        Raises:
            UnauthenticatedError: the credentials are unknown or missing.
            ResourceExhaustedError: too many wrong credentials came from this address.
        """
        caller = self.find_caller(token, common_name)
        now_s = self._now_s()
        self._limit.check(address, None if caller is None else caller.name, now_s)
        if caller is not None:
            self._limit.succeeded(address, caller.name)
            return caller
        if token or common_name:
            # A call without credentials is no attempt to guess any.
            self._limit.failed(address, now_s)
            self.trail.record(AuditRecord("", "", "", address, what, UNAUTHENTICATED))
        raise UnauthenticatedError(
            "this token is not known here, or no longer"
            if token
            else "the call needs the metadata 'authorization: Bearer TOKEN'"
        )

    def find_caller(self, token: str, common_name: str) -> Caller | None:
        """Return the caller of the token or, if it is empty, of the certificate; None: unknown.

        For calls that need no credentials: nothing is counted, limited or audited.
        """
        if token:
            return self._keyring.of_token(token)
        return self._keyring.of_certificate(common_name) if common_name else None

    def find_named(self, name: str) -> Caller | None:
        """Return the caller with a name that a cookie of the page has proved; None: unknown."""
        return self._keyring.of_name(name)

    def close(self) -> None:
        """Close the audit trail; may be called twice."""
        self.trail.close()


def retry_after_s(error: ResourceExhaustedError) -> str:
    """Return the seconds until the next attempt is allowed; empty: the error has another cause."""
    return error.facts.get("retry_after_s", "")


def address_of_peer(peer: str) -> str:
    """Return the address in a gRPC peer (`ipv4:10.0.0.7:41234`), no port; its kind if not IP."""
    kind, _, place = unquote(peer).partition(":")
    if kind not in {"ipv4", "ipv6"}:
        return kind
    return place.rpartition(":")[0].strip("[]")
