"""The authenticator of a process: who calls, may they, and the line in the audit trail."""

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
"""Outcome of a call whose credentials are nobody's."""


class Authenticator:
    """Lets callers in; one for all servers of a process.

    Args:
        keyring: who has which credentials.
        trail: where changes and refusals are written down.
        limit: of wrong credentials.
        now_s: monotonic time.
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
        """Return an authenticator that knows one token only, and writes no file."""
        return cls(Keyring(token), AuditTrail())

    def identify(self, address: str, token: str, common_name: str, what: str) -> Caller:
        """Return who shows these credentials.

        Args:
            address: of the caller, without port.
            token: bearer token; empty: none is shown.
            common_name: of a client certificate that TLS has checked; empty: none. A token wins.
            what: the method or route, for the trail.

        Raises:
            UnauthenticatedError: they are nobody's, or there are none.
            ResourceExhaustedError: too many wrong ones came from there; none is looked at now.
        """
        caller = self.recognise(token, common_name)
        now_s = self._now_s()
        self._limit.check(address, None if caller is None else caller.name, now_s)
        if caller is not None:
            self._limit.succeeded(address, caller.name)
            return caller
        if token or common_name:
            # Who shows nothing has guessed nothing.
            self._limit.failed(address, now_s)
            self.trail.record(AuditRecord("", "", "", address, what, UNAUTHENTICATED))
        raise UnauthenticatedError(
            "this token is not known here, or no longer"
            if token
            else "the call needs the metadata 'authorization: Bearer TOKEN'"
        )

    def recognise(self, token: str, common_name: str) -> Caller | None:
        """Return who shows these credentials, where none are needed; None: nobody is known by them.

        Nothing is counted, and nothing written down.
        """
        if token:
            return self._keyring.of_token(token)
        return self._keyring.of_certificate(common_name) if common_name else None

    def close(self) -> None:
        """Close the trail; may be called twice."""
        self.trail.close()


def retry_after_s(error: ResourceExhaustedError) -> str:
    """Return after how many seconds credentials are looked at again; empty: not for that reason."""
    return error.facts.get("retry_after_s", "")


def address_of_peer(peer: str) -> str:
    """Return the address without port in what gRPC calls a peer, e.g. `ipv4:10.0.0.7:41234`."""
    kind, _, place = unquote(peer).partition(":")
    if kind not in {"ipv4", "ipv6"}:
        return kind
    return place.rpartition(":")[0].strip("[]")
