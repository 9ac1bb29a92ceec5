"""Folders of NNI on a worker, and errors with their remedies; standard library only.

    ~/.nni/bundles/<hash>/      an unpacked agent: `run.py`, `site/`, `trial/`
    ~/.nni/agents/<name>/       one agent: settings.json, prepared.json, process.json, end.json,
                                agent.log, lock

The home of a user is often shared between machines, so each agent has a folder of its own, and a
bundle is put into its place by a rename.
"""

import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

BUNDLES: Final = "bundles"
AGENTS: Final = "agents"
LOG: Final = "agent.log"
LOCK: Final = "lock"
SETTINGS: Final = "settings.json"
PREPARATION: Final = "prepared.json"
"""Names the bundle of an agent whose settings were written before its process starts."""
PROCESS: Final = "process.json"
END: Final = "end.json"
DRAFT: Final = ".new-"
"""Prefix of the names of unfinished files and folders."""
_PRIVATE: Final = 0o700
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CLOSED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class WorkerError(Exception):
    """Error of a worker's program: code, message with path, remedy, and whether it is permanent.

    Attributes:
        code: one word for programs, e.g. `disk_full`.
        message: what is wrong, with the path.
        remedy: what to do about it.
        permanent: True if another try cannot succeed before a person has acted.
    """

    def __init__(
        self, code: str, message: str, remedy: str = "", *, permanent: bool = True
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.permanent = permanent


def file_error(error: OSError, folder: Path) -> WorkerError:
    """Convert an OSError of a file below a folder to an error with a remedy."""
    path = error.filename2 or error.filename or folder  # of a rename: the target
    host = os.uname().nodename
    if error.errno in _FULL:
        return WorkerError(
            "disk_full",
            f"no space to write {path} on {host}: {error.strerror}",
            f"free space or raise the quota of {folder} on {host}",
        )
    if error.errno in _CLOSED:
        return WorkerError(
            "not_writable",
            f"{path} on {host} cannot be written: {error.strerror}",
            f"let the user write to {folder} on {host}, or choose another folder",
        )
    return WorkerError(
        "file_error", f"{path} on {host}: {error.strerror or error}", permanent=False
    )


class WorkerFolders:
    """Paths below the folder of NNI on a worker.

    Args:
        base: that folder; `~` is the home of the user.
    """

    def __init__(self, base: str) -> None:
        self.base = Path(base).expanduser()

    @property
    def bundles(self) -> Path:
        """Parent of the unpacked bundles."""
        return self.base / BUNDLES

    @property
    def agents(self) -> Path:
        """Parent of the folders of agents."""
        return self.base / AGENTS

    def bundle(self, digest: str) -> Path:
        """Return the folder of an unpacked bundle."""
        return self.bundles / checked_word(digest)

    def agent(self, name: str) -> Path:
        """Return the folder of an agent."""
        return self.agents / checked_word(name)

    def names(self) -> list[str]:
        """Return the names of all agents that have a folder."""
        try:
            return sorted(
                entry.name
                for entry in os.scandir(self.agents)
                if entry.is_dir(follow_symlinks=False)
            )
        except FileNotFoundError:
            return []

    def open(self) -> None:
        """Create the folders, for this user only.

        Raises:
            WorkerError: they cannot be created.
        """
        with file_errors(self.base):
            for folder in (self.base, self.bundles, self.agents):
                make_private(folder)


def checked_word(word: str) -> str:
    """Return the word if it can name a folder; raise WorkerError otherwise.

    Raises:
        WorkerError: it is empty, or has other characters than letters, digits, `.`, `_` and `-`.
    """
    plain = word.replace("-", "").replace("_", "").replace(".", "")
    if not (plain.isascii() and plain.isalnum()) or word.startswith("."):
        raise WorkerError("bad_name", f"{word[:80]!r} cannot be the name of a folder")
    return word


@contextmanager
def file_errors(folder: Path) -> Iterator[None]:
    """Convert an OSError in the block to a WorkerError with a remedy."""
    try:
        yield
    except OSError as error:
        raise file_error(error, folder) from error


def make_private(folder: Path) -> None:
    """Create a folder with mode 0700; take write permission from others if it exists.

    Raises:
        OSError: it cannot be created, or is a link or another user's.
    """
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", str(folder))
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        folder.chmod(stat.S_IMODE(found.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 at once: readers find the old content or the new one.

    Raises:
        OSError: it cannot be written.
    """
    descriptor, draft = tempfile.mkstemp(prefix=DRAFT, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)


def write_fields(path: Path, fields: Mapping[str, object]) -> None:
    """Write a mapping as JSON.

    Raises:
        OSError: it cannot be written.
    """
    write_private(path, json.dumps(fields).encode())


def read_fields(path: Path) -> dict[str, Any]:
    """Return the mapping in a file; empty if the file is missing or damaged."""
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def remove_folder(folder: Path) -> None:
    """Remove a folder with its content, after chmod where needed; unlink a file or symbolic link.

    Raises:
        OSError: something is left, e.g. files of another user.
    """
    if not folder.is_dir() or folder.is_symlink():
        folder.unlink(missing_ok=True)
        return
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for place, _, _ in os.walk(folder):
        with suppress(OSError):
            Path(place).chmod(_PRIVATE)
    shutil.rmtree(folder)
