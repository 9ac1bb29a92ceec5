"""Processes of this machine, read from /proc: identities, descendants, groups."""

import os
import signal
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.storage.shared_mounts import MOUNT_MARK, MOUNT_VARIABLE
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.launch import TOKEN_VARIABLE

_TOKEN_PREFIX: Final = f"{TOKEN_VARIABLE}=".encode()
_MOUNT_PREFIX: Final = f"{MOUNT_VARIABLE}=".encode()
_MOUNT_MARK: Final = MOUNT_MARK.encode()
ZOMBIE: Final = "Z"
"""State of a process that has ended and is not reaped."""
_PIECE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """Process as read from /proc: ids of process, parent, group, session, start time, state."""

    pid: int
    parent: int
    group: int
    session: int
    start_time: int
    state: str
    """`Z` for a zombie."""

    @property
    def name(self) -> tuple[int, int]:
        """Process id and start time, which together are unique since the boot."""
        return self.pid, self.start_time


def read_entry(pid: int) -> ProcessEntry | None:
    """Read a process from `/proc/<pid>/stat`; None: there is none with this number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - read hundreds of times
            data = file.read()
    except OSError:
        return None
    fields = data.rpartition(b")")[2].split()
    return ProcessEntry(
        pid,
        int(fields[1]),
        int(fields[2]),
        int(fields[3]),
        int(fields[19]),
        fields[0].decode(),
    )


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return the identity of a process; None if there is none with this number."""
    entry = read_entry(pid)
    return None if entry is None else ProcessIdentity(pid, entry.start_time)


def all_processes() -> list[ProcessEntry]:
    """Return all visible processes."""
    entries = (read_entry(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - half the cost
    return [entry for entry in entries if entry is not None]


class ChildList:
    """List of the main thread's children, adopted ones too, as the kernel has it.

    The kernel gives orphans to the first thread of their new parent. The lists of the other
    threads, which hold no orphan, would cost seven system calls each at every end of a trial; the
    file stays open, since to open it costs more than to read it.
    """

    def __init__(self) -> None:
        try:
            path = f"/proc/self/task/{os.getpid()}/children"
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # a kernel without these lists
            self._file = -1

    def pids(self) -> list[int]:
        """Return the process ids; none if the kernel lists none, or after `close`."""
        data = b""
        while self._file >= 0:
            piece = os.pread(self._file, _PIECE_BYTES, len(data))
            if not piece:
                break
            data += piece
        return [int(pid) for pid in data.split()]

    def close(self) -> None:
        """Close the list; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class ProcessSnapshot:
    """Tree of all processes at one moment, searched by id, descent or trial token.

    Args:
        entries: the processes; None: those visible now.
        code_user: account of trials, as which their environments are read.
    """

    def __init__(
        self, entries: Iterable[ProcessEntry] | None = None, code_user: CodeUser = SAME_USER
    ) -> None:
        self._code_user = code_user
        self.entries = list(all_processes() if entries is None else entries)
        self._children: dict[int, list[ProcessEntry]] = defaultdict(list)
        for entry in self.entries:
            self._children[entry.parent].append(entry)
        self._by_token: dict[bytes, list[ProcessEntry]] | None = None

    def find(self, pid: int) -> ProcessEntry | None:
        """Return a process by its number; None if it is missing."""
        return next((entry for entry in self.entries if entry.pid == pid), None)

    def descendants(self, root: int) -> list[ProcessEntry]:
        """Return all direct and indirect children of a process in the snapshot, without itself."""
        found: list[ProcessEntry] = []
        pending = [root]
        while pending:
            for child in self._children.get(pending.pop(), ()):
                found.append(child)
                pending.append(child.pid)
        return found

    def carrying(self, token: str, below: int) -> list[ProcessEntry]:
        """Return processes with a trial's token; the tree under `below` is read at first call."""
        if self._by_token is None:
            self._by_token = defaultdict(list)
            with self._code_user.acting():
                for entry in self.descendants(below):
                    self._by_token[token_of(entry.pid)].append(entry)
        return self._by_token.get(token.encode(), [])


def with_descendants(roots: list[ProcessEntry]) -> list[ProcessEntry]:
    """Return processes and all their descendants that have not ended, parents first."""
    if not roots:
        return []
    snapshot = ProcessSnapshot()
    below = (entry for root in roots for entry in snapshot.descendants(root.pid))
    return [*roots, *(entry for entry in below if entry.state != ZOMBIE)]


def token_of(pid: int) -> bytes:
    """Read a process's trial token from `/proc/<pid>/environ`; empty: none."""
    return _variable(pid, _TOKEN_PREFIX)


def serves_mount(pid: int) -> bool:
    """Return whether a process is a daemon of a shared storage that this agent has mounted."""
    return _variable(pid, _MOUNT_PREFIX) == _MOUNT_MARK


def _variable(pid: int, prefix: bytes) -> bytes:
    """Read a variable from `/proc/<pid>/environ`; empty: none, or not readable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - read hundreds of times
            variables = file.read().split(b"\0")
    except OSError:
        return b""
    return next((text[len(prefix) :] for text in variables if text.startswith(prefix)), b"")


def signal_exactly(entry: ProcessEntry | ProcessIdentity, number: signal.Signals) -> bool:
    """Send a signal to a process if its start time still matches; return whether it was sent.

    The descriptor pins the process, then the start time confirms that it is the right one: a
    number that was reused in between is never hit.
    """
    try:
        descriptor = os.pidfd_open(entry.pid)
    except OSError:
        return False
    try:
        now = read_entry(entry.pid)
        if now is None or now.start_time != entry.start_time:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to all members of a process group; do nothing if there are none."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def signal_tree(
    leader: ProcessIdentity,
    snapshot: ProcessSnapshot,
    related: Iterable[ProcessEntry],
    number: signal.Signals,
) -> None:
    """Send a signal to a process's group and to related processes outside it.

    Args:
        leader: of the group; a process that reused its number is left alone, with its group.
        snapshot: of all processes; it may be a moment old.
        related: processes of the snapshot that belong to the leader's trial.
        number: the signal.
    """
    now = snapshot.find(leader.pid)
    if now is None or now.start_time == leader.start_time:
        signal_group(leader.pid, number)
    for entry in related:
        if entry.group == leader.pid:
            # It was a member; it may have left between the snapshot and the signal to the group.
            current = read_entry(entry.pid)
            if current is None or current.group == leader.pid:
                continue
        signal_exactly(entry, number)


def group_exists(group: int) -> bool:
    """Return whether a process group exists, by signal 0; true if a signal is not permitted."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class ProcProcessTable:
    """Table of this machine's processes that tells which descend from the agent."""

    def own(self, process_ids: Iterable[int]) -> frozenset[int]:
        """Return the ids that are descendants of this agent."""
        mine = {entry.pid for entry in ProcessSnapshot().descendants(os.getpid())}
        return frozenset(mine.intersection(process_ids))
