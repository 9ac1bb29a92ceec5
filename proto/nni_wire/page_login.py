"""Login codes in the page's printed address, in place of the installation's token.

A code is valid for one listening socket of this machine and a limited time:
`page.<end, seconds since 1970>.<hash>`. A program that gets it, e.g. by listening on the port of a
stopped experiment, learns no token, and cannot use the code at the next experiment on that port.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

LIFETIME_S: Final = 12 * 3600
"""Time for which a code is valid, in seconds."""
_KIND: Final = "page"
_PARTS: Final = 3


def login_code(token: str, port: int, now_s: float, opening: str = "") -> str:
    """Return a short-lived login code, signed with the token for one listening socket.

    Args:
        token: of the installation.
        port: of the listener.
        now_s: seconds since 1970.
        opening: which socket listens, as `nni_wire.socket_owners.listening_socket` returns it.
    """
    head = f"{_KIND}.{int(now_s) + LIFETIME_S}"
    return f"{head}.{_hash(token, port, opening, head)}"


def is_login_code(text: str) -> bool:
    """Return whether a text has the prefix and the number of dotted parts of a login code."""
    return text.startswith(f"{_KIND}.") and len(text.split(".")) == _PARTS


def is_valid_code(code: str, token: str, port: int, now_s: float, opening: str = "") -> bool:
    """Return whether a login code is signed for this token and listening socket, not expired."""
    head, _, given = code.rpartition(".")
    if not hmac.compare_digest(given.encode(), _hash(token, port, opening, head).encode()):
        return False
    return int(head.partition(".")[2]) > now_s


def _hash(token: str, port: int, opening: str, head: str) -> str:
    key = hmac.new(token.encode(), b"nni page login", hashlib.sha256).digest()
    return hmac.new(key, f"{port}/{opening}/{head}".encode(), hashlib.sha256).hexdigest()
