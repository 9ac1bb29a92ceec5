"""Access policy of HTTP listeners: decisions on the headers of one request, without I/O.

On loopback, reading is open to every program of this machine unless the installation is private, so
the policy defends against
browsers: a page of another site can neither read (DNS rebinding: its Host is not loopback; or its
Origin differs) nor change anything (the cookie is `SameSite=Strict`, and a form cannot send
`application/json`). Changing needs a token or a client certificate; off loopback reading needs one,
too. The rule of each route says which role it needs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from nni_wire.page_login import is_login_code, is_valid_code
from svc_common.access.authentication import Authenticator
from svc_common.access.delegation import effective_caller
from svc_common.access.roles import READER, Caller
from svc_common.access.transport import is_loopback
from svc_common.errors import PermissionDeniedError, UnauthenticatedError
from svc_manager.web.errors import UnsupportedTypeError
from svc_manager.web.page_access import ListenerId, PageCookies

READING_METHODS: Final = frozenset({"GET", "HEAD"})
_NEEDED: Final = (
    "this needs the token of the installation: open the address that nnictl printed, or send "
    "`Authorization: Bearer <token of $NNI_HOME/endpoint.json, or your own>`"
)
CERTIFICATE_NAME: Final = "certificate_name"
"""Key of the client certificate's common name in the state of a request."""
TOKEN_QUERY: Final = "token"  # noqa: S105 - the name of a parameter
"""Query parameter of the page's printed address, a token or login code; exchanged for a cookie."""
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    # Only files of this origin: the page has no inline script, and charts style by attributes.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",  # the first address may contain the token
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    # For browsers without frame-ancestors.
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[\w.-]{1,255})(?::[0-9]{0,5})?")
"""`host[:port]`; in particular without user information, which ends with `@`."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Headers, address and credentials of a request, on which the access policy decides."""

    method: str
    host: str
    origin: str
    content_type: str
    has_body: bool
    authorization: str = field(repr=False)
    cookie_token: str = field(repr=False)
    is_page: bool = False
    """True if it requests a file of the page, which contains no user data."""
    address: str = ""
    """Address of the client, without port."""
    certificate_name: str = ""
    """Common name of the client certificate that TLS verified; empty: no certificate."""
    path: str = ""
    """Path for the audit trail."""
    on_behalf_of: str = ""
    """Caller for whom another manager forwards; see `svc_common.access.delegation`."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Access policy of a listener: hosts, origins, tokens, cookies, client certificates."""

    token: str = field(repr=False)
    """Secret of the installation; grants every role; never empty."""
    reading_needs_token: bool = False
    """True off loopback, where other machines can connect."""
    private: bool = False
    """Whether reading needs the token on loopback, too."""
    allowed_hosts: frozenset[str] = frozenset()
    """Accepted host names besides loopback names, in lower case, without port.

    Empty: none on loopback; any off loopback, where the token protects reading.
    """
    authenticator: Authenticator | None = field(default=None, repr=False)
    """Who has which credentials; None: only the holder of `token` has any."""
    encrypted: bool = False
    """True if the listener speaks HTTPS."""

    listener: ListenerId = field(default_factory=ListenerId)
    """Identity of the listener."""
    now_s: Callable[[], float] = time.time
    """Seconds since 1970."""

    def __post_init__(self) -> None:
        if not self.token:
            raise ValueError("token must not be empty")
        if self.authenticator is None:
            object.__setattr__(self, "authenticator", Authenticator.of_token(self.token))

    @property
    def cookies(self) -> PageCookies:
        """Maker and verifier of the page's cookies."""
        return PageCookies(self.token, self.listener, self.now_s)

    @property
    def cookie_name(self) -> str:
        """Name of the page's cookie."""
        return self.cookies.name

    def log_in(self, head: RequestHead, shown: str) -> str:
        """Return a login cookie for a token or login code, reusable until it expires; or raise.

        Raises:
            UnauthenticatedError: it is unknown, or its time has passed.
            ResourceExhaustedError: the client's address sent too many wrong credentials.
        """
        token = shown
        if is_login_code(shown) and is_valid_code(
            shown, self.token, self.listener.port, self.now_s(), self.listener.number
        ):
            token = self.token
        return self.cookies.make(self.identify(head, token).name)

    def check(self, head: RequestHead) -> Caller:
        """Check host, origin, type and credentials of a request; return its caller or raise.

        Raises:
            PermissionDeniedError: the Host or Origin is not one of this listener.
            UnsupportedTypeError: a changing request has a body that is not JSON.
            UnauthenticatedError: required credentials are missing or wrong.
            ResourceExhaustedError: the client's address sent too many wrong credentials.
        """
        self._check_host(head)
        _check_origin(head)
        if head.method not in READING_METHODS:
            _check_type(head)
        elif head.is_page:
            return READER
        elif not self.reading_needs_token:
            return self._loopback_reader(head)
        from_cookie = self._caller_of_cookie(head)
        if from_cookie is not None:
            return effective_caller(from_cookie, head.on_behalf_of)
        return self.identify(head, _token_of(head))

    def _caller_of_cookie(self, head: RequestHead) -> Caller | None:
        """Return the caller of a valid page cookie; None: there is none, or a token was sent."""
        assert self.authenticator is not None, "__post_init__ made one"
        if head.authorization or not head.cookie_token or self.is_ambiguous(head):
            return None
        name = self.cookies.caller_of(head.cookie_token)
        return self.authenticator.find_named(name) if name else None

    def is_ambiguous(self, head: RequestHead) -> bool:
        """Return whether Host is `localhost` without TLS: another user may listen at its other IP.

        `localhost` is two addresses. The port is bound at one of them; where another user listens
        at the other, that user would get the cookies of this host's name.
        """
        return bool(self.listener.opening) and host_name(head.host) == "localhost"

    def _loopback_reader(self, head: RequestHead) -> Caller:
        """Return the caller of a read on loopback; `READER` if there are no valid credentials."""
        assert self.authenticator is not None, "__post_init__ made one"
        found = self._caller_of_cookie(head) or self.authenticator.find_caller(
            _token_of(head), head.certificate_name
        )
        return effective_caller(found or READER, head.on_behalf_of)

    def identify(self, head: RequestHead, token: str) -> Caller:
        """Return the caller of a token or client certificate; raise if it is missing or unknown.

        Raises:
            UnauthenticatedError: the credentials are missing or unknown.
            ResourceExhaustedError: the client's address sent too many wrong credentials.
        """
        assert self.authenticator is not None, "__post_init__ made one"
        if not token and not head.certificate_name:
            raise UnauthenticatedError(_NEEDED)
        what = f"{head.method} {head.path}"
        try:
            found = self.authenticator.identify(head.address, token, head.certificate_name, what)
        except UnauthenticatedError as error:
            raise UnauthenticatedError(_NEEDED) from error
        return effective_caller(found, head.on_behalf_of)

    def _check_host(self, head: RequestHead) -> None:
        if head.host and not _HOST.fullmatch(head.host.strip()):
            raise PermissionDeniedError(
                f"Host must be a name or an address, and a port, got {head.host!r:.80}"
            )
        # Where reading needs the token, DNS rebinding gains nothing: the browser sends the cookie
        # to the original host name only.
        if self.reading_needs_token and not self.private and not self.allowed_hosts:
            return
        name = host_name(head.host)
        if not is_loopback(name) and name not in self.allowed_hosts:
            raise PermissionDeniedError(
                f"Host must be a loopback name like 127.0.0.1 or localhost, got {head.host!r:.80}"
            )


def _token_of(head: RequestHead) -> str:
    """Return the bearer token of a request; empty: none. A cookie is never a token."""
    kind, _, bearer = head.authorization.partition(" ")
    return bearer.strip() if kind.lower() == "bearer" else ""


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
    # A DELETE without a body needs no type; no form can send a DELETE.
    if head.method == "DELETE" and not media_type and not head.has_body:
        return
    raise UnsupportedTypeError(
        f"Content-Type must be application/json, got {media_type or 'none'!r:.80}"
    )


def authority_of(origin: str) -> str | None:
    """Return `host[:port]` of an Origin header in lower case; None for `null` or malformed."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in {"http", "https"} and parts.netloc else None


def host_name(host: str) -> str:
    """Return the host name of a Host header, in lower case, without port and brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host
