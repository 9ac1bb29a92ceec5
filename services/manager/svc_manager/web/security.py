"""Who may ask what over HTTP: decisions on the headers of one request, without any I/O.

On loopback, reading is open to every program of this machine, so a browser is what has to be
kept out: a foreign page must neither read (DNS rebinding: its Host is not loopback; or its
Origin is another one) nor change anything (its cookie is `SameSite=Strict`, and a form cannot
send `application/json`). Changing needs the installation's token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from svc_common.errors import PermissionDeniedError, UnauthenticatedError
from svc_manager.web.errors import UnsupportedTypeError

READING_METHODS: Final = frozenset({"GET", "HEAD"})
TOKEN_QUERY: Final = "token"  # noqa: S105 - the name of a parameter
"""Parameter of the printed address that carries the token once."""
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    # Only our own files; the page needs no inline script, charts style by attributes.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",  # the token may stand in the first address
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What the decisions look at; header values are empty where the header is absent."""

    method: str
    host: str
    origin: str
    content_type: str
    has_body: bool
    authorization: str = field(repr=False)
    cookie_token: str = field(repr=False)
    is_page: bool = False
    """Whether it asks for a file of the page, which holds nothing of anybody."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The rules of one listener."""

    token: str = field(repr=False)
    """What proves that the caller may change things; never empty."""
    reading_needs_token: bool = False
    """True off loopback, where other machines could read."""
    allowed_hosts: frozenset[str] = frozenset()
    """Host names accepted besides loopback ones, in lower case, without port.

    Empty: none on loopback; off loopback, where the token protects reading, any.
    """

    def __post_init__(self) -> None:
        if not self.token:
            raise ValueError("token must not be empty")

    @property
    def cookie_name(self) -> str:
        """Name of the page's cookie.

        Browsers keep cookies by host and not by port, so the name tells installations on one
        machine apart.
        """
        return "nni-" + hashlib.sha256(self.token.encode()).hexdigest()[:8]

    def check(self, head: RequestHead) -> None:
        """Return if the request may go on.

        Raises:
            PermissionDeniedError: its Host or Origin is not ours.
            UnsupportedTypeError: it would change something with a body that is not JSON.
            UnauthenticatedError: it lacks the token where one is needed.
        """
        self._check_host(head)
        _check_origin(head)
        if head.method not in READING_METHODS:
            _check_type(head)
        elif head.is_page or not self.reading_needs_token:
            return
        if not self.knows_token(head):
            raise UnauthenticatedError(
                "this needs the token of the installation: open the address that nnictl printed, "
                "or send `Authorization: Bearer <token of $NNI_HOME/endpoint.json>`"
            )

    def knows_token(self, head: RequestHead) -> bool:
        """Return whether the request carries the token, as bearer or as cookie."""
        kind, _, bearer = head.authorization.partition(" ")
        sent = bearer.strip() if kind.lower() == "bearer" else head.cookie_token
        return self.matches(sent)

    def matches(self, token: str) -> bool:
        """Return whether ``token`` is the right one; takes as long for each wrong one."""
        return hmac.compare_digest(
            token.encode("utf-8", "surrogateescape"), self.token.encode("utf-8", "surrogateescape")
        )

    def _check_host(self, head: RequestHead) -> None:
        # Where even reading needs the token, a rebound name gains nothing: the browser keeps the
        # cookie for our name only.
        if self.reading_needs_token and not self.allowed_hosts:
            return
        name = host_name(head.host)
        if not is_loopback(name) and name not in self.allowed_hosts:
            raise PermissionDeniedError(
                f"Host must be a loopback name like 127.0.0.1 or localhost, got {head.host!r:.80}"
            )


def _check_origin(head: RequestHead) -> None:
    if not head.origin:
        return
    origin = authority_of(head.origin)
    if origin != head.host.lower():
        raise PermissionDeniedError(
            f"requests of another site's page are refused (Origin {head.origin!r:.80})"
        )


def _check_type(head: RequestHead) -> None:
    media_type = head.content_type.partition(";")[0].strip().lower()
    if media_type == "application/json":
        return
    # A DELETE carries nothing that a type could describe; no form can send one.
    if head.method == "DELETE" and not media_type and not head.has_body:
        return
    raise UnsupportedTypeError(
        f"Content-Type must be application/json, got {media_type or 'none'!r:.80}"
    )


def authority_of(origin: str) -> str | None:
    """Return `host[:port]` of an Origin header in lower case; None for `null` and nonsense."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in {"http", "https"} and parts.netloc else None


def host_name(host: str) -> str:
    """Return the name in a Host header, in lower case and without port and brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def is_loopback(name: str) -> bool:
    """Return whether ``name`` can only mean this machine."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
