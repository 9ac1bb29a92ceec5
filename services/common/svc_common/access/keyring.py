"""Keyring of known callers: the installation's token, the agents' token, and the access file."""

import hmac
import os
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from nni_wire.access import (
    AGENT,
    FILE_LIMIT_BYTES,
    TOKEN_LIMIT_CHARACTERS,
    AccessEntry,
    fingerprint,
    load_entries,
)
from svc_common.access.roles import (
    AGENTS_NAME,
    BY_CERTIFICATE,
    BY_PAGE,
    SERVICES_NAME,
    Caller,
    Role,
)
from svc_common.environment import NNI_ACCESS_FILE
from svc_common.errors import InvalidArgumentError
from svc_common.logs import get_logger

_MAY_CHANGE: Final = stat.S_IWOTH | stat.S_IWGRP
"""Permissions that only the owner may have, since a writer could grant itself access. Readers see
fingerprints only, and orchestrators mount files with modes of their own."""

_Stamp = tuple[int, int, int]


class _AccessFile:
    """Entries of one access file, read again when it changes.

    Args:
        path: the file.
        agents_only: True for a file that the fleet writes: it may be missing, and entries of other
            roles than that of agents are ignored, so that the fleet cannot make administrators.

    Raises:
        InvalidArgumentError: the file cannot be used.
    """

    def __init__(self, path: Path, *, agents_only: bool = False) -> None:
        self._path = path
        self._agents_only = agents_only
        self._stamp: _Stamp | None = None
        self._entries: tuple[AccessEntry, ...] = ()
        if not agents_only or path.exists():
            self._read()

    def current(self) -> tuple[AccessEntry, ...]:
        """Return the entries, read again if the file changed; the old ones on an error."""
        try:
            if _stamp(self._path.stat()) != self._stamp:
                self._read()
                get_logger().info("access file read", callers=len(self._entries))
        except (OSError, InvalidArgumentError) as error:
            if self._stamp is not None:
                self._stamp = None  # logged once, until it can be read again
                get_logger().error("access file cannot be read", error=str(error))
        return self._entries

    def _read(self) -> None:
        self._stamp, entries = _read(self._path)
        self._entries = tuple(one for one in entries if not self._agents_only or one.role == AGENT)


class Keyring:
    """Finder of callers by token, certificate or name; access files are read again on change.

    Args:
        token: of the installation; its holder is an administrator.
        agent_token: of the agents, which allows uploads and downloads of blobs; empty: none.
        file: access file; None: none. A changed file that cannot be read is logged, and the former
            content stays valid.
        agents_file: access file of agents, which the fleet writes; None: none. It may be missing,
            and gives no role but that of agents.
        now: returns the time, for expiry.

    Raises:
        InvalidArgumentError: a file cannot be used.
    """

    def __init__(
        self,
        token: str,
        file: Path | None = None,
        *,
        agent_token: str = "",
        agents_file: Path | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._own = fingerprint(token)
        self._agents = fingerprint(agent_token) if agent_token else ""
        self._now = now
        self._files = [] if file is None else [_AccessFile(file)]
        if agents_file is not None:
            self._files.append(_AccessFile(agents_file, agents_only=True))

    def of_token(self, token: str) -> Caller | None:
        """Return the caller of a token (services, agents, access file); None: unknown or expired.

        Takes equally long for every wrong token: all fingerprints are compared in constant time.
        """
        if not token or len(token) > TOKEN_LIMIT_CHARACTERS:
            return None
        shown = fingerprint(token)
        found: Caller | None = None
        if hmac.compare_digest(shown, self._own):
            found = Caller(SERVICES_NAME, Role.ADMIN, "token")
        if self._agents and hmac.compare_digest(shown, self._agents):
            found = found or Caller(AGENTS_NAME, Role.AGENT, "token")
        for entry in self._current():
            if entry.sha256 and hmac.compare_digest(shown, entry.sha256) and self._is_valid(entry):
                role = Role.of_word(entry.role)
                found = found or Caller(entry.name, role, "token", entry.pool)
        return found

    def of_certificate(self, common_name: str) -> Caller | None:
        """Return the caller whose entry has this certificate's name; None: unknown or expired."""
        for entry in self._current():
            if common_name and entry.common_name == common_name and self._is_valid(entry):
                return Caller(entry.name, Role.of_word(entry.role), BY_CERTIFICATE)
        return None

    def of_name(self, name: str) -> Caller | None:
        """Return the caller with a name that a cookie proved; None: not (or no longer) valid."""
        if name == SERVICES_NAME:
            return Caller(SERVICES_NAME, Role.ADMIN, BY_PAGE)
        for entry in self._current():
            if entry.name == name and self._is_valid(entry):
                return Caller(entry.name, Role.of_word(entry.role), BY_PAGE)
        return None

    def _is_valid(self, entry: AccessEntry) -> bool:
        return entry.expires is None or self._now() < entry.expires

    def _current(self) -> Iterator[AccessEntry]:
        """Yield the entries of all files."""
        for file in self._files:
            yield from file.current()


def _read(file: Path) -> tuple[_Stamp, tuple[AccessEntry, ...]]:
    """Parse an access file; return stamp and entries; raise if malformed or writable by others.

    Raises:
        InvalidArgumentError: the file cannot be read, is writable by others, or is malformed.
    """
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            data = opened.read(FILE_LIMIT_BYTES + 1)
    except OSError as error:
        raise InvalidArgumentError(
            NNI_ACCESS_FILE, f"must be readable ({error.strerror})", str(file)
        ) from error
    if status.st_mode & _MAY_CHANGE:
        raise InvalidArgumentError(
            NNI_ACCESS_FILE,
            "must not be writable by others",
            str(file),
            f"run: chmod go-w {file}",
        )
    if len(data) > FILE_LIMIT_BYTES:
        raise InvalidArgumentError(
            NNI_ACCESS_FILE, f"must have at most {FILE_LIMIT_BYTES:,} bytes", str(file)
        )
    try:
        return _stamp(status), load_entries(data.decode("utf-8"))
    except ValueError as error:
        raise InvalidArgumentError(
            NNI_ACCESS_FILE, f"must be what `nnictl token` writes: {error}", str(file)
        ) from error


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_mtime_ns, status.st_ino, status.st_size
