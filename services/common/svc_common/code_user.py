"""Account of user code: another user than that of the service, where the service may change users.

The entry point of containers (`svc_common.entry_point`) starts a service with the rights to change
users and to signal those of another user, and names the account in `NNI_CODE_USER`. User code then
runs as that account: it can neither trace nor signal the service, nor read or write its files.
Elsewhere user code runs as the user of the service, which forbids inspection of itself.
"""

import ctypes
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

from svc_common import environment
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.inspection import keep_capabilities_from_children

_UMASK: Final = 0o002
"""What user code writes can be written by its group, to which the services belong."""
_SHARED: Final = 0o2775
_SHARED_STICKY: Final = 0o3775
_FILE_OF_GROUP: Final = 0o660
_FOLDER_OF_GROUP: Final = 0o770
_DEPTH_LIMIT: Final = 100
_ENTRIES_LIMIT: Final = 1_000_000
_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_QUERY: Final = -1
"""Argument of `setfsuid` that changes nothing."""
_SAME_IDENTITY: Final = nullcontext()
"""Context without effect, for all who act as the service's own user."""


class ProcessOptions(TypedDict, total=False):
    """Arguments of `subprocess.Popen` that start a process as another user."""

    user: int
    group: int
    extra_groups: list[int]
    umask: int


@dataclass(frozen=True, slots=True)
class CodeUser:
    """Account under which user code runs: starts processes as it, shares files with it by group.

    Attributes:
        uid: number of the user; None: that of the service.
        gid: number of its group, to which the service belongs.
        groups: further groups of user code, e.g. of GPUs and data sets.
    """

    uid: int | None = None
    gid: int = 0
    groups: tuple[int, ...] = ()

    @property
    def process_options(self) -> ProcessOptions:
        """Arguments of `subprocess.Popen` for user code; none for the service's own user."""
        if self.uid is None:
            return {}
        return {
            "user": self.uid,
            "group": self.gid,
            "extra_groups": list(self.groups),
            "umask": _UMASK,
        }

    def acting(self) -> AbstractContextManager[None]:
        """Access files as this user, in this thread, within the block, which must not await.

        Only the identity for file access changes: user code can signal and trace this process as
        little as before.

        Raises:
            FailedPreconditionError: this process may not change users.
        """
        return _SAME_IDENTITY if self.uid is None else self._acting_as(self.uid)

    @contextmanager
    def _acting_as(self, uid: int) -> Iterator[None]:
        group = _LIBC.setfsgid(self.gid)
        user = _LIBC.setfsuid(uid)
        try:
            if _LIBC.setfsuid(_QUERY) != uid or _LIBC.setfsgid(_QUERY) != self.gid:
                raise FailedPreconditionError(
                    f"user {uid} cannot be used for user code: CAP_SETUID and CAP_SETGID are "
                    "missing; start the service by svc_common.entry_point"
                )
            yield
        finally:
            _LIBC.setfsuid(user)
            _LIBC.setfsgid(group)

    def share(self, folder: Path | str, *, sticky: bool = False) -> None:
        """Make a folder writable for a separate code user, by group; do nothing for the same user.

        Args:
            folder: of the service's user; one of another user stays as it is.
            sticky: whether files of the service in it are protected from user code.

        Raises:
            OSError: it cannot be shared.
        """
        if self.uid is None:
            return
        mode = _SHARED_STICKY if sticky else _SHARED
        found = os.stat(folder, follow_symlinks=False)  # noqa: PTH116 - a string is faster
        if found.st_gid == self.gid and stat.S_IMODE(found.st_mode) == mode:
            return
        descriptor = os.open(folder, _OPEN_FOLDER)
        try:
            if os.fstat(descriptor).st_uid == os.geteuid():
                os.fchown(descriptor, -1, self.gid)
                os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def admit_to_socket(self, folder: Path, path: str) -> None:
        """Let a separate code user, no other, connect to a socket in a private folder, by group.

        Raises:
            OSError: it cannot be shared.
        """
        if self.uid is None:
            return
        for place, mode in ((path, 0o660), (str(folder), 0o710)):
            os.chown(place, -1, self.gid)
            os.chmod(place, mode)  # noqa: PTH101 - as its owner's group above

    def open_to_services(self, folder: Path | str) -> None:
        """Grant the services' group access to all files of user code below a folder; skip failures.

        User code may have made files for itself only. What cannot be opened stays as it is.
        """
        if self.uid is None:
            return
        with self.acting():
            try:
                descriptor = os.open(folder, _OPEN_FOLDER)
            except OSError:
                return
            _open_to_group(descriptor, self.uid)


def _open_to_group(descriptor: int, uid: int) -> None:
    """Grant the group access to user's entries below a folder, up to limits; close descriptors."""
    pending = [(descriptor, _names(descriptor))]
    entries = 0
    try:
        while pending and entries < _ENTRIES_LIMIT:
            folder, names = pending[-1]
            if not names:
                os.close(pending.pop()[0])
                continue
            entries += 1
            child = _open_entry(folder, names.pop(), uid)
            if child is not None and len(pending) < _DEPTH_LIMIT:
                pending.append((child, _names(child)))
            elif child is not None:
                os.close(child)
    finally:
        for folder, _ in pending:
            os.close(folder)


def _open_entry(folder: int, name: str, uid: int) -> int | None:
    """Grant the group access to a user's entry; return a folder's descriptor, else None."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        is_folder = stat.S_ISDIR(found.st_mode)
        if not is_folder and not stat.S_ISREG(found.st_mode):
            return None
        mode = stat.S_IMODE(found.st_mode)
        wanted = (mode | (_FOLDER_OF_GROUP if is_folder else _FILE_OF_GROUP)) & ~stat.S_ISVTX
        if mode != wanted and found.st_uid == uid:
            # Whatever a racing process puts in its place belongs to the same user.
            os.chmod(name, wanted, dir_fd=folder)
        return os.open(name, _OPEN_FOLDER, dir_fd=folder) if is_folder else None
    except OSError:
        return None


def _names(folder: int) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


SAME_USER: Final = CodeUser()
"""User code runs as the user of the service."""


def parse_ids(name: str, text: str) -> tuple[int, int]:
    """Return user and group of a text `UID[:GID]`; the group is that of the same number by default.

    Raises:
        InvalidArgumentError: it has another form; the error is about `name`.
    """
    uid, _, gid = text.partition(":")
    if not uid.isdecimal() or not (gid or uid).isdecimal():
        raise InvalidArgumentError(name, "must be UID or UID:GID in numbers", text)
    return int(uid), int(gid or uid)


def read_code_user() -> CodeUser:
    """Return the account in `NNI_CODE_USER`; clear children's capabilities and set the umask.

    The rights of this process are not inherited by its children from now on; to be called before
    threads are started.

    Raises:
        InvalidArgumentError: `NNI_CODE_USER` is malformed.
        FailedPreconditionError: this process may not change users.
    """
    keep_capabilities_from_children()
    text = environment.text(environment.NNI_CODE_USER, "")
    if not text:
        return SAME_USER
    uid, gid = parse_ids(environment.NNI_CODE_USER, text)
    own = {os.getegid(), gid, 0}
    user = CodeUser(uid, gid, tuple(number for number in os.getgroups() if number not in own))
    with user.acting():
        pass  # raises where it is not allowed
    os.umask(_UMASK)
    return user
