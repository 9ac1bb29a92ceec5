"""Audit trail: one line for every changing or refused call, with caller, method, time and outcome.

Lines go to the log of the service (`logger` is `audit`) and to a file that only this user can read.
They hold names and ids, never tokens, parameters or configurations.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from svc_common.logs import get_logger
from svc_common.own_files import place_for_log

AUDIT_FILE: Final = "audit.log"
FILE_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""A larger file is rotated; one generation is kept."""
_TEXT_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """Caller, role, address, method, outcome and objects of one call, for the audit trail."""

    caller: str
    """Name of the caller; empty: not authenticated."""
    role: str
    by: str
    """How the caller was authenticated: `token`, `certificate`, `page` (a cookie) or `nothing`;
    empty: it was not."""
    peer: str
    """Address of the caller."""
    what: str
    """RPC or REST route."""
    outcome: str
    """`OK`, or the error."""
    experiment: str = ""
    trial: str = ""
    request: str = ""
    """Request id, which identifies repetitions."""
    folder: str = ""
    """Folders of this machine that the call named or used."""
    blob: str = ""
    """Key of the blob that was uploaded or downloaded."""


class AuditTrail:
    """Writer of audit records to the log and, with a folder, to a JSON file that is rotated.

    Several services may write to one file, each with a trail of its own: who finds it too large
    renames it, and the others follow with their next record. A line that a full disk has cut ends
    without `}`; the next record begins on a line of its own.

    Args:
        folder: folder of the file; None: records are only logged.
        file_limit_bytes: a larger file is rotated.
    """

    def __init__(
        self, folder: Path | None = None, file_limit_bytes: int = FILE_LIMIT_BYTES
    ) -> None:
        self._path = None if folder is None else folder / AUDIT_FILE
        self._limit_bytes = file_limit_bytes
        self._descriptor = -1
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place_for_log(self._path)
        self._descriptor = self._open(self._path)
        self._follow(self._path)

    def record(self, record: AuditRecord) -> None:
        """Log a record; append it as JSON with time, texts cut; a failed write is only logged."""
        facts = {
            name: text[:_TEXT_LIMIT] for name in record.__slots__ if (text := getattr(record, name))
        }
        get_logger().info("audit", logger="audit", **facts)
        if self._path is None or self._descriptor < 0:
            return
        line = json.dumps({"at": datetime.now(UTC).isoformat(), **facts}) + "\n"
        self._follow(self._path)
        try:
            self._append(line.encode())
        except OSError as error:
            get_logger().error("audit file cannot be written", error=str(error))

    def _append(self, line: bytes) -> None:
        """Append a line in one write, after the end of a line that was cut.

        Raises:
            OSError: nothing of it was written.
        """
        size = os.fstat(self._descriptor).st_size
        # Any service may have written the cut line.
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(self._descriptor, line)
        if written < len(line):
            # The rest is not repeated: another service may have written in between.
            get_logger().error("audit line cut", written=written, length=len(line))

    def _follow(self, path: Path) -> None:
        """Rotate the file or continue with the current one; keep the open one if neither works."""
        try:
            self._rotate(path)
        except OSError as error:  # e.g. a folder in place of the earlier file; too many open files
            get_logger().error("audit file cannot be rotated", error=str(error))

    def _rotate(self, path: Path) -> None:
        """Rename a file that is too large; continue with another process's new file, if any."""
        mine = os.fstat(self._descriptor)
        with suppress(FileNotFoundError):
            present = path.lstat()
            if not os.path.samestat(mine, present):
                self._continue(path)  # another service has rotated it
            elif mine.st_size > self._limit_bytes:
                with suppress(BlockingIOError), self._alone(path):
                    if os.path.samestat(mine, path.lstat()):
                        path.replace(path.with_suffix(".log.1"))
                self._continue(path)
            return
        self._continue(path)

    def _continue(self, path: Path) -> None:
        place_for_log(path)
        before, self._descriptor = self._descriptor, self._open(path)
        os.close(before)

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        """Hold the folder's lock in the block, for a rename; raise if another process holds it.

        Raises:
            BlockingIOError: another process holds it; it may rotate, or never let go.
        """
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(folder)

    @staticmethod
    def _open(path: Path) -> int:
        # A line is one write, so lines of several services do not mix. No pipe holds it up.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(path, flags | os.O_NONBLOCK, 0o600)

    def close(self) -> None:
        """Close the audit file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
