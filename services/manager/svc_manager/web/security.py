"""Who may ask what over HTTP: decisions on the headers of one request, without any I/O.

On loopback, reading is open to every program of this machine, so a browser is what has to be
kept out: a foreign page must neither read (DNS rebinding: its Host is not loopback; or its
Origin is another one) nor change anything (its cookie is `SameSite=Strict`, and a form cannot
send `application/json`). Changing needs a token or a client certificate, and off loopback so does
reading; what their holder may do, the table of permissions says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from svc_common.access.authentication import Authenticator
from svc_common.access.delegation import effective_caller
from svc_common.access.roles import READER, Caller
from svc_common.access.transport import is_loopback
from svc_common.errors import PermissionDeniedError, UnauthenticatedError
from svc_manager.web.errors import UnsupportedTypeError

READING_METHODS: Final = frozenset({"GET", "HEAD"})
_NEEDED: Final = (
    "this needs the token of the installation: open the address that nnictl printed, or send "
    "`Authorization: Bearer <token of $NNI_HOME/endpoint.json, or your own>`"
)
CERTIFICATE_NAME: Final = "certificate_name"
"""Where the common name of the client's certificate stands in the state of a request."""
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
    "Cross-Origin-Opener-Policy": "same-origin",
    # For browsers that know no frame-ancestors.
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
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
    address: str = ""
    """Where it comes from, without port."""
    certificate_name: str = ""
    """Common name of a client certificate that TLS has checked; empty: none was shown."""
    path: str = ""
    """For the audit trail."""
    on_behalf_of: str = ""
    """Said by another manager: for whom it asks, see `svc_common.access.delegation`."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The rules of one listener."""

    token: str = field(repr=False)
    """Secret of the installation, whose holder may do everything; never empty."""
    reading_needs_token: bool = False
    """True off loopback, where other machines could read."""
    allowed_hosts: frozenset[str] = frozenset()
    """Host names accepted besides loopback ones, in lower case, without port.

    Empty: none on loopback; off loopback, where the token protects reading, any.
    """
    authenticator: Authenticator | None = field(default=None, repr=False)
    """Who has which credentials; None: only the holder of `token` has any."""
    encrypted: bool = False
    """Whether the listener speaks HTTPS."""

    def __post_init__(self) -> None:
        if not self.token:
            raise ValueError("token must not be empty")
        if self.authenticator is None:
            object.__setattr__(self, "authenticator", Authenticator.of_token(self.token))

    @property
    def cookie_name(self) -> str:
        """Name of the page's cookie.

        Browsers keep cookies by host and not by port, so the name tells installations on one
        machine apart.
        """
        return "nni-" + hashlib.sha256(self.token.encode()).hexdigest()[:8]

    def check(self, head: RequestHead) -> Caller:
        """Return who asks, if the request may go on.

        Raises:
            PermissionDeniedError: its Host or Origin is not ours.
            UnsupportedTypeError: it would change something with a body that is not JSON.
            UnauthenticatedError: it lacks credentials where they are needed, or has wrong ones.
            ResourceExhaustedError: too many wrong ones came from its address.
        """
        self._check_host(head)
        _check_origin(head)
        if head.method not in READING_METHODS:
            _check_type(head)
        elif head.is_page:
            return READER
        elif not self.reading_needs_token:
            return self._reader(head)
        return self.identify(head, _sent(head))

    def _reader(self, head: RequestHead) -> Caller:
        """Return who reads on loopback, where nobody needs credentials: not even right ones."""
        assert self.authenticator is not None, "__post_init__ made one"
        found = self.authenticator.recognise(_sent(head), head.certificate_name) or READER
        return effective_caller(found, head.on_behalf_of)

    def identify(self, head: RequestHead, token: str) -> Caller:
        """Return whose credentials these are.

        Raises:
            UnauthenticatedError: nobody's, or there are none.
            ResourceExhaustedError: too many wrong ones came from the address.
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
        # Where even reading needs the token, a rebound name gains nothing: the browser keeps the
        # cookie for our name only.
        if self.reading_needs_token and not self.allowed_hosts:
            return
        name = host_name(head.host)
        if not is_loopback(name) and name not in self.allowed_hosts:
            raise PermissionDeniedError(
                f"Host must be a loopback name like 127.0.0.1 or localhost, got {head.host!r:.80}"
            )


def _sent(head: RequestHead) -> str:
    """Return the token that a request carries, as bearer or as cookie; empty: none."""
    kind, _, bearer = head.authorization.partition(" ")
    return bearer.strip() if kind.lower() == "bearer" else head.cookie_token


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
