"""Cookies and login codes of the page: keyed hashes that are valid at one listener only.

Browsers send the cookies of a host to all its ports, so whatever listens on a port that an
experiment has freed gets the cookies of open pages. A cookie is therefore no token: it names its
caller, its listener and its end, and the listener's key authenticates it. No other listener accepts
it, nor does one that is opened later on the same port of this machine.

    cookie: `v1.<end, seconds since 1970>.<caller, base64url>.<hash>`
    login code: `nni_wire.page_login`, made by the client
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_VERSION: Final = "v1"
_PARTS: Final = 4
LIFETIME_S: Final = 7 * 86_400
"""Time for which a cookie is valid: a page that is left open over days keeps its rights."""
_KEY_PURPOSE: Final = b"nni page cookie"


@dataclass(frozen=True, slots=True)
class ListenerId:
    """Port, experiment and socket that a listener's cookies are valid for."""

    port: int = 0
    experiment_id: str = ""
    """Empty: the base listener."""
    opening: str = ""
    """Differs for each socket that is opened on the port; empty where TLS proves who listens, and
    where several managers serve the same page."""
    number: str = ""
    """The same as other programs of this machine find it out, for login codes; empty where they
    cannot."""

    @property
    def text(self) -> str:
        """Text that represents the listener in hashes."""
        return f"{self.port}/{self.experiment_id}/{self.opening}"


@dataclass(frozen=True, slots=True)
class PageCookies:
    """Maker and verifier of signed login cookies for one listener's page.

    Args:
        secret: of the installation.
        listener: that the cookies are valid at.
        now_s: seconds since 1970.
    """

    secret: str = field(repr=False)
    listener: ListenerId = ListenerId()
    now_s: Callable[[], float] = time.time

    @property
    def name(self) -> str:
        """Return the cookie's name, hashed from port and experiment so that listeners differ.

        Browsers store cookies by host, not by port, so the name is unique per listener.
        """
        text = f"{self.secret}/{self.listener.port}/{self.listener.experiment_id}"
        return "nni-" + hashlib.sha256(text.encode()).hexdigest()[:8]

    def make(self, caller: str) -> str:
        """Return a signed cookie value with the caller's name, which expires in 7 days."""
        name = base64.urlsafe_b64encode(caller.encode()).decode().rstrip("=")
        head = f"{_VERSION}.{int(self.now_s()) + LIFETIME_S}.{name}"
        return f"{head}.{self._hash(head)}"

    def caller_of(self, cookie: str) -> str:
        """Verify a cookie's signature and expiry; return its caller's name; empty: invalid."""
        head, _, given = cookie.rpartition(".")
        if not hmac.compare_digest(given.encode(), self._hash(head).encode()):
            return ""
        parts = head.split(".")
        if len(parts) != _PARTS - 1 or parts[0] != _VERSION or int(parts[1]) <= self.now_s():
            return ""
        try:
            return base64.urlsafe_b64decode(parts[2] + "=" * (-len(parts[2]) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            return ""

    def _hash(self, head: str) -> str:
        key = hmac.digest(self.secret.encode(), _KEY_PURPOSE, "sha256")
        text = f"{self.listener.text}/{head}".encode()
        return hmac.digest(key, text, "sha256").hex()
