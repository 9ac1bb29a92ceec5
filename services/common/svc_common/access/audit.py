"""Audit trail: one line for every changing or refused call, with caller, method, time and outcome.

Lines go to the log of the service (`logger` is `audit`) and to a file that only this user can read.
They hold names and ids, never tokens, parameters or configurations.
"""

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from svc_common.logs import get_logger
from svc_common.storage.own_files import place_for_file

AUDIT_FILE: Final = "audit.log"
FILE_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""A larger file is rotated (one generation is kept) when a service starts."""
_TEXT_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """Caller, role, address, method, outcome and objects of one call, for the audit trail."""

    caller: str
    """Name of the caller; empty: not authenticated."""
    role: str
    by: str
    """How the caller was authenticated: `token`, `certificate`, `nothing`."""
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
    """Writer of audit records to the log and, with a folder, to a JSON file rotated at the start.

    Args:
        folder: folder of the file; None: records are only logged.
        file_limit_bytes: a larger file is rotated at the start.
    """

    def __init__(
        self, folder: Path | None = None, file_limit_bytes: int = FILE_LIMIT_BYTES
    ) -> None:
        self._descriptor = -1
        if folder is None:
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / AUDIT_FILE
        place_for_file(path)
        try:
            if path.stat().st_size > file_limit_bytes:
                path.replace(path.with_suffix(".log.1"))
        except FileNotFoundError:
            pass
        # Several services append to one file: a line is one write, so lines do not mix.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o600)

    def record(self, record: AuditRecord) -> None:
        """Log a record; append it as JSON with time, texts cut; a failed write is only logged."""
        facts = {
            name: text[:_TEXT_LIMIT] for name in record.__slots__ if (text := getattr(record, name))
        }
        get_logger().info("audit", logger="audit", **facts)
        if self._descriptor < 0:
            return
        line = json.dumps({"at": datetime.now(UTC).isoformat(), **facts}) + "\n"
        try:
            os.write(self._descriptor, line.encode())
        except OSError as error:
            get_logger().error("audit file cannot be written", error=str(error))

    def close(self) -> None:
        """Close the audit file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
