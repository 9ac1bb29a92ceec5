"""Journal of claims: JSON lines in one file, each written before its effect.

A last line that was cut by a crash is dropped on open. Loss of power is out of scope: the
trials would be gone as well.
"""

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from svc_common.errors import FailedPreconditionError
from svc_common.logs import get_logger
from svc_trial_runner.domain.claims import (
    AttemptKey,
    Claimed,
    Closed,
    DirectoryKnown,
    Ended,
    JournalRecord,
    JournalState,
    ProcessIdentity,
    Progressed,
    Redelivered,
    ServerStarted,
    Started,
)

COMPACT_BYTES: Final = 4 * 1024 * 1024
"""Size at which the file is compacted."""


class FileClaimJournal:
    """`ports.ClaimJournal` in a file.

    Args:
        path: of the file; its folder exists.
        machine_boot_id: boot id of the kernel; processes of another boot have ended.
        compact_bytes: size at which the file is compacted.

    Raises:
        FailedPreconditionError: another agent uses the file.
    """

    def __init__(
        self, path: Path, machine_boot_id: str, compact_bytes: int = COMPACT_BYTES
    ) -> None:
        self._path = path
        self._compact_bytes = compact_bytes
        self._machine_boot_id = machine_boot_id
        self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise FailedPreconditionError(
                f"another agent uses {path.parent}; give this one another NNI_HOME"
            ) from error
        self._state = JournalState()
        self._read()
        self._file = -1
        self._size = 0
        self._compact()

    @property
    def state(self) -> JournalState:
        """See `ports.ClaimJournal.state`."""
        return self._state

    def append(self, *records: JournalRecord) -> None:
        """See `ports.ClaimJournal.append`."""
        for record in records:
            self._state.fold(record)
        try:
            if self._size > self._compact_bytes:
                self._compact()
                return
            data = b"".join(map(_encode, records))
            os.write(self._file, data)
            self._size += len(data)
        except OSError as error:
            get_logger().error("claims not on disk", path=str(self._path), error=str(error))

    def forget_servers(self) -> None:
        """See `ports.ClaimJournal.forget_servers`."""
        self._state.servers.clear()
        self._compact()

    def close(self) -> None:
        """See `ports.ClaimJournal.close`."""
        if self._file >= 0:
            os.close(self._file)
            os.close(self._lock)
            self._file = -1

    def _read(self) -> None:
        with suppress(FileNotFoundError):
            lines = self._path.read_bytes().split(b"\n")
            same_boot = bool(lines) and _decode_header(lines[0]) == self._machine_boot_id
            for line in lines[1:-1]:
                record = _decode(line)
                if record is not None:
                    self._state.fold(record)
            if not same_boot:
                self._state.servers.clear()
                for claim in self._state.claims.values():
                    claim.leader = None

    def _compact(self) -> None:
        """Replace the file atomically by the shortest journal."""
        data = json.dumps(["boot", self._machine_boot_id]).encode() + b"\n"
        data += b"".join(map(_encode, self._state.records()))
        temporary = self._path.with_suffix(".new")
        temporary.write_bytes(data)
        temporary.chmod(0o600)
        temporary.replace(self._path)
        if self._file >= 0:
            os.close(self._file)
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        # The size after compaction must not trigger the next one at once.
        self._size = 0


def _encode(record: JournalRecord) -> bytes:
    match record:
        case Claimed(key, claim_id, token, ack_subject):
            fields: list[Any] = ["claim", *key, claim_id, token, ack_subject]
        case Redelivered(claim_id, ack_subject):
            fields = ["again", claim_id, ack_subject]
        case Started(claim_id, leader):
            fields = ["start", claim_id, leader.pid, leader.start_time]
        case Progressed(claim_id, next_sequence):
            fields = ["next", claim_id, next_sequence]
        case Ended(claim_id):
            fields = ["end", claim_id]
        case Closed(claim_id):
            fields = ["close", claim_id]
        case ServerStarted(leader):
            fields = ["server", leader.pid, leader.start_time]
        case DirectoryKnown(experiment_id, directory):
            fields = ["folder", experiment_id, directory]
    return json.dumps(fields).encode() + b"\n"


def _decode_header(line: bytes) -> str | None:
    with suppress(ValueError):
        match json.loads(line):
            case ["boot", str(boot_id)]:
                return boot_id
    return None


def _decode(line: bytes) -> JournalRecord | None:
    """Parse the record in a line; return None if this version does not know it."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    match fields:
        case ["claim", experiment_id, trial_id, attempt, claim_id, token, ack_subject]:
            key = AttemptKey(experiment_id, trial_id, attempt)
            return Claimed(key, claim_id, token, ack_subject)
        case ["again", claim_id, ack_subject]:
            return Redelivered(claim_id, ack_subject)
        case ["start", claim_id, pid, start_time]:
            return Started(claim_id, ProcessIdentity(pid, start_time))
        case ["next", claim_id, next_sequence]:
            return Progressed(claim_id, next_sequence)
        case ["end", claim_id]:
            return Ended(claim_id)
        case ["close", claim_id]:
            return Closed(claim_id)
        case ["server", pid, start_time]:
            return ServerStarted(ProcessIdentity(pid, start_time))
        case ["folder", experiment_id, directory]:
            return DirectoryKnown(experiment_id, directory)
    return None
