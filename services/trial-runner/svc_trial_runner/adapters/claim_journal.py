"""Journal of claims: JSON lines in one file, each written before its effect.

A last line that was cut by a crash is dropped on open. A damaged file is set aside, and its
readable lines are used. Loss of power is out of scope: the trials would be gone as well.
"""

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.logs import get_logger
from svc_common.own_files import place_for_file, read_or_set_aside, set_aside
from svc_common.storage.atomic_files import atomic_file
from svc_common.subjects import check_id
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
    ServerEnded,
    ServerStarted,
    Started,
)

_KINDS: Final = (
    *("claim", "again", "start", "next", "end", "close"),
    *("server", "server end", "folder"),
)
_LARGEST: Final = 2**31 - 1
COMPACT_BYTES: Final = 4 * 1024 * 1024
"""Size at which the file is compacted."""


class FileClaimJournal:
    """Append-only file of the agent's task claims: locked, replayed at the start, compacted.

    Args:
        path: of the file; its folder exists.
        machine_boot_id: boot id of the kernel; processes of another boot have ended.
        compact_bytes: size at which the file is compacted.

    Raises:
        FailedPreconditionError: another agent uses the file, or the folder cannot be used.
    """

    def __init__(
        self, path: Path, machine_boot_id: str, compact_bytes: int = COMPACT_BYTES
    ) -> None:
        self._path = path
        self._compact_bytes = compact_bytes
        self._machine_boot_id = machine_boot_id
        lock = path.with_name(f"{path.name}.lock")
        try:
            place_for_file(lock)
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FailedPreconditionError(f"{lock} cannot be used: {error}") from error
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
        self._outdated = False
        """True: records are not in the file, which is to be written anew."""
        self._compact()

    @property
    def state(self) -> JournalState:
        """State folded from the records."""
        return self._state

    def append(self, *records: JournalRecord) -> None:
        """Fold records into the state and append them to the file; an error is only logged.

        What a full disk has refused is written with the next records that it takes.
        """
        for record in records:
            self._state.fold(record)
        data = b"".join(map(_encode, records))
        try:
            compacts = self._outdated or self._size > self._compact_bytes
            if compacts or os.write(self._file, data) < len(data):  # cut short: no line may follow
                self._compact()
            else:
                self._size += len(data)
        except OSError as error:
            self._outdated = True
            get_logger().error("claims not on disk", path=str(self._path), error=str(error))

    def forget_servers(self) -> None:
        """Remove an earlier agent's process servers from the journal, once they were killed."""
        self._state.servers.clear()
        self._compact()

    def close(self) -> None:
        """Close the journal's file and release its lock; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            os.close(self._lock)
            self._file = -1

    def _read(self) -> None:
        place_for_file(self._path)
        content = read_or_set_aside(self._path)
        if content is None:
            return
        lines = content.split(b"\n")
        same_boot = _decode_header(lines[0]) == self._machine_boot_id
        damaged = 0
        for line in lines[1:-1]:
            try:
                record = _decode(line)
            except (ValueError, TypeError, RecursionError, InvalidArgumentError):
                damaged += 1
                continue
            if record is not None:
                self._state.fold(record)
        if damaged:
            # The manager reports trials lost that this agent does not know any more.
            set_aside(self._path, f"{damaged} of its lines cannot be read; their trials are lost")
        if not same_boot:
            self._state.servers.clear()
            for claim in self._state.claims.values():
                claim.leader = None

    def _compact(self) -> None:
        """Rewrite the journal atomically with only the records that its state needs."""
        data = json.dumps(["boot", self._machine_boot_id]).encode() + b"\n"
        data += b"".join(map(_encode, self._state.records()))
        with atomic_file(self._path) as file:
            file.write(data)
        following = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if self._file >= 0:
            os.close(self._file)
        self._file = following
        self._outdated = False
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
        case ServerEnded(leader):
            fields = ["server end", leader.pid, leader.start_time]
        case DirectoryKnown(experiment_id, directory):
            fields = ["folder", experiment_id, directory]
    return json.dumps(fields).encode() + b"\n"


def _decode_header(line: bytes) -> str | None:
    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case ["boot", str(boot_id)]:
                return boot_id
    return None


def _decode(line: bytes) -> JournalRecord | None:
    """Parse a journal line to a record; None: a later version's kind; raise if malformed.

    Raises:
        ValueError: the line is no record.
        TypeError: a field has the wrong type.
    """
    match json.loads(line):
        case ["claim", str(experiment_id), str(trial_id), attempt, *names]:
            claim_id, token, ack_subject = _texts(names, 3)
            check_id("experiment_id", experiment_id)
            key = AttemptKey(experiment_id, check_id("trial_id", trial_id), _number(attempt))
            return Claimed(key, claim_id, token, ack_subject)
        case ["again", *names]:
            return Redelivered(*_texts(names, 2))
        case ["start", str(claim_id), pid, start_time]:
            return Started(claim_id, _process(pid, start_time))
        case ["next", str(claim_id), next_sequence]:
            return Progressed(claim_id, _number(next_sequence))
        case ["end", str(claim_id)]:
            return Ended(claim_id)
        case ["close", str(claim_id)]:
            return Closed(claim_id)
        case ["server", pid, start_time]:
            return ServerStarted(_process(pid, start_time))
        case ["server end", pid, start_time]:
            return ServerEnded(_process(pid, start_time))
        case ["folder", *names]:
            return DirectoryKnown(*_texts(names, 2))
        case fields:
            _check_unknown(fields)
            return None


def _check_unknown(fields: object) -> None:
    """Raise unless a journal line is a list with a kind unknown to this version.

    Raises:
        ValueError: the line is no record.
        TypeError: it is a record of this version with other fields.
    """
    if not isinstance(fields, list) or not fields:
        raise ValueError("a record must be a list with a kind")
    if fields[0] in _KINDS:
        raise TypeError(f"a field of the record {fields[0]!r} has the wrong type")


def _texts(fields: list[object], count: int) -> list[str]:
    texts = [field for field in fields if isinstance(field, str)]
    if len(texts) != count or len(fields) != count:
        raise TypeError(f"the record must end with {count} texts")
    return texts


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise TypeError(f"must be a number from 0 to {_LARGEST}, got {value!r:.80}")
    return value


def _process(pid: object, start_time: object) -> ProcessIdentity:
    # Number 0 would match every process of another namespace, number 1 is init.
    if type(pid) is not int or not 1 < pid <= _LARGEST:
        raise TypeError(f"a process id must be a number above 1, got {pid!r:.80}")
    if type(start_time) is not int:
        raise TypeError(f"a start time must be a number, got {start_time!r:.80}")
    return ProcessIdentity(pid, start_time)
