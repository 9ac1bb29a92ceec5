"""Access file: callers of a deployment and their roles, as `nnictl token` writes it.

It holds fingerprints only. A token has 256 random bits, so that one SHA-256 of it can neither be
turned back nor guessed, and needs no salt.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

AGENT: Final = "agent"
ROLES: Final = (AGENT, "viewer", "user", "admin")
"""Roles in ascending order. The last three include each other; the first is for agents that run
trials, and allows uploads and downloads of blobs only."""
ENTRY_LIMIT: Final = 10_000
"""Most callers in one file."""
FILE_LIMIT_BYTES: Final = 4_000_000
TOKEN_LIMIT_CHARACTERS: Final = 512
"""Longest token that is accepted."""
_VERSION: Final = 1
_TOKEN_BYTES: Final = 32
_PREFIX: Final = "nni_"
"""Prefix of tokens, by which secret scanners find them."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}\Z")
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}\Z")
RESERVED_NAMES: Final = frozenset({"installation", "agents", "anybody-on-this-machine"})
"""Names of callers that are in no access file: the audit trail must not mix them with others."""
_FIELDS: Final = frozenset({"name", "role", "sha256", "common_name", "created", "expires", "pool"})


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """Caller in an access file: name, role, expiry, pool; token's hash, or certificate's name."""

    name: str
    """Unique in the file; name of the caller in the audit log."""
    role: str
    """One of `ROLES`."""
    sha256: str = ""
    """Fingerprint of the token; empty: the entry has a certificate."""
    common_name: str = ""
    """Common name of the certificate's subject; empty: the entry has a token."""
    created: datetime | None = None
    """Time of creation; None: unknown."""
    expires: datetime | None = None
    """Time of expiry, aware; None: never."""
    pool: str = ""
    """Pool of an agent whose token is limited to its own trials; empty: no limit."""

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ValueError(
                "name must be 1 to 64 letters, digits, '_', '-', '.' or '@', and start with a "
                f"letter, a digit or '_', got {self.name!r:.80}"
            )
        if self.name.lower() in RESERVED_NAMES:
            raise ValueError(f"name must not be {self.name!r}: it means a caller of the services")
        if self.role not in ROLES:
            raise ValueError(f"role must be one of {', '.join(ROLES)}, got {self.role!r:.80}")
        if bool(self.sha256) == bool(self.common_name):
            raise ValueError(f"{self.name} must have either sha256 or common_name")
        if self.pool and (self.role != AGENT or not self.sha256):
            raise ValueError(f"pool of {self.name} must be left out: it is of agents with a token")
        if self.sha256 and not _FINGERPRINT.match(self.sha256):
            raise ValueError(f"sha256 of {self.name} must be 64 hexadecimal digits in lower case")


def new_token() -> str:
    """Return a new random token with the prefix of NNI's tokens."""
    return _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)


def fingerprint(token: str) -> str:
    """Return the fingerprint of a token, which the file holds instead of it."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def dump_entries(entries: Iterable[AccessEntry]) -> str:
    """Return an access file's JSON text: version and callers, without their empty fields."""
    shown = [
        {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name in sorted(_FIELDS)
            if (value := getattr(entry, name))
        }
        for entry in entries
    ]
    return json.dumps({"version": _VERSION, "callers": shown}, indent=2) + "\n"


def load_entries(text: str) -> tuple[AccessEntry, ...]:
    """Parse an access file's JSON to a tuple of callers; raise ValueError with what is wrong.

    Raises:
        ValueError: it is none; the message says what is wrong where.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from error
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise ValueError(f"it must be an object with version {_VERSION}")
    callers = content.get("callers")
    if not isinstance(callers, list) or len(callers) > ENTRY_LIMIT:
        raise ValueError(f"callers must be a list of at most {ENTRY_LIMIT:,} entries")
    entries = tuple(_entry(item) for item in callers)
    names = [entry.name for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"name must be unique, got {twice!r} twice")
    return entries


def _entry(item: Any) -> AccessEntry:  # noqa: ANN401 - a JSON value, checked here
    if not isinstance(item, Mapping) or not all(isinstance(text, str) for text in item.values()):
        raise ValueError("each caller must be an object of texts")
    unknown = sorted(set(item) - _FIELDS)
    if unknown:
        raise ValueError(f"a caller has no field {unknown[0]!r:.80}")
    return AccessEntry(
        name=item.get("name", ""),
        role=item.get("role", ""),
        sha256=item.get("sha256", ""),
        common_name=item.get("common_name", ""),
        created=_instant(item, "created"),
        expires=_instant(item, "expires"),
        pool=item.get("pool", ""),
    )


def _instant(item: Mapping[str, str], field: str) -> datetime | None:
    text = item.get(field, "")
    if not text:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(
            f"{field} must be a time as ISO 8601 writes it, got {text!r:.80}"
        ) from error
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
