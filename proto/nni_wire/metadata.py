"""Names of the gRPC metadata keys that clients and services exchange."""

from __future__ import annotations

from typing import Final

AUTHORIZATION_KEY: Final = "authorization"
"""`Bearer <token>` on every call."""

ERROR_DETAILS_KEY: Final = "nni-error-bin"
"""Trailing metadata of a refused call: JSON object with the facts of the error.

Keys: `field`, `rule`, `value`, `remedy` for bad input; others by the kind of error.
"""


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata that authenticates with ``token``."""
    return ((AUTHORIZATION_KEY, f"Bearer {token}"),)
