"""File access below an open folder, in which others may place links.

Trials, archives and clients choose names below folders of experiments. A name is resolved relative
to the descriptor of a folder, no link is followed on the way, and no name leads out: a link that is
placed between a check and its use gains nothing.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Final, Self

from svc_common.beneath import FOLDER, OpenBeneath, open_beneath, plain_parts
from svc_common.durable_files import sync_folder

DEPTH_LIMIT: Final = 100
"""Most folders in a path of an archive: the time to open, make and list one grows with them."""
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DRAFT: Final = ".new-"
_REMOVED: Final = ".removed-"


class SafeFolder:
    """Open folder for work with untrusted names: follows no links and never leaves the folder.

    Names are relative paths with `/`. Operations block: call them in a thread. A missing file or
    folder raises FileNotFoundError; a link on the way, or a name that leads out, its subclass
    `UnsafePathError`.

    Args:
        descriptor: of the folder; it is closed with this object.
        path: of the folder, for messages.
        open_name: opens a name below the folder.
    """

    def __init__(self, descriptor: int, path: Path, open_name: OpenBeneath = open_beneath) -> None:
        self._descriptor = descriptor
        self.path = path
        self._open_name = open_name

    @classmethod
    def open(
        cls, path: Path, *, create: bool = False, open_name: OpenBeneath = open_beneath
    ) -> Self:
        """Open a folder by a trusted path, with links followed; create it on request.

        Args:
            path: of the folder.
            create: whether it is created, with its parents, if it is missing.
            open_name: opens names below the folder.
        """
        if create:
            path.mkdir(parents=True, exist_ok=True)
        return cls(os.open(path, FOLDER), path, open_name)

    def __enter__(self) -> Self:
        """Return the folder."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the folder."""
        self.close()

    def close(self) -> None:
        """Close the folder's descriptor; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def folder(self, name: str) -> Self:
        """Open an existing folder by its relative name; links are not followed."""
        return type(self)(self._open(name, FOLDER), self.path / name, self._open_name)

    def make_folder(self, name: str, mode: int = 0o777) -> Self:
        """Open a subfolder by a relative name; create missing folders on the way."""
        current = type(self)(os.dup(self._descriptor), self.path, self._open_name)
        for part in plain_parts(name):
            with current as above:
                with suppress(FileExistsError):
                    above.create_folder(part, mode)
                current = above.folder(part)
        return current

    def create_folder(self, name: str, mode: int = 0o777) -> None:
        """Create a subfolder by a relative name; raise FileExistsError if the name is in use.

        Raises:
            FileExistsError: the name is in use.
        """
        with self.parent_of(name) as (above, last):
            os.mkdir(last, mode, dir_fd=above)

    def read_file(self, name: str) -> BinaryIO:
        """Open a regular file of the folder for reading; raise FileNotFoundError for others.

        Raises:
            FileNotFoundError: it does not exist, or is no regular file.
        """
        # NONBLOCK: opening a pipe would wait for its writer.
        descriptor = self._open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileNotFoundError(errno.ENOENT, "not a regular file", str(self.path / name))
        return os.fdopen(descriptor, "rb")

    def create_file(self, name: str, mode: int = 0o644) -> BinaryIO:
        """Create a new file in the folder for writing; raise FileExistsError if the name is used.

        Raises:
            FileExistsError: the name is in use, be it by a link.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return os.fdopen(self._open(name, flags, mode), "wb")

    def append_file(self, name: str, mode: int = 0o644) -> FileIO:
        """Open a regular file of the folder for appending, without a buffer; create if missing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = self._open(name, flags, mode)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileNotFoundError(errno.ENOENT, "not a regular file", str(self.path / name))
        return FileIO(descriptor, "a")

    def replace_file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Write data to a temporary file, sync it, and rename it over the name in the folder."""
        draft = f"{_DRAFT}{secrets.token_hex(8)}"
        with self.parent_of(name) as (above, last):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(draft, flags, mode, dir_fd=above)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(draft, last, src_dir_fd=above, dst_dir_fd=above)
                sync_folder(above)
            except OSError:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=above)
                raise

    def status(self, name: str) -> os.stat_result | None:
        """Return the `stat` of a name in the folder, of a link itself; None: it does not exist."""
        try:
            with self.parent_of(name) as (above, last):
                return os.stat(last, dir_fd=above, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None  # of links on the way, too

    def is_folder(self, name: str) -> bool:
        """Return whether a name is a folder, and no link."""
        status = self.status(name)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_file(self, name: str) -> bool:
        """Return whether a name is a regular file, and no link."""
        status = self.status(name)
        return status is not None and stat.S_ISREG(status.st_mode)

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """Return (name, `stat`) of the folder's direct entries, sorted; links are not followed."""
        found = []
        descriptor = os.open(".", _LIST, dir_fd=self._descriptor)
        try:
            for name in sorted(os.listdir(descriptor)):  # noqa: PTH208 - a descriptor
                try:
                    found.append((name, os.stat(name, dir_fd=descriptor, follow_symlinks=False)))
                except FileNotFoundError:  # deleted meanwhile
                    continue
        finally:
            os.close(descriptor)
        return found

    def walk(
        self, without: frozenset[str] = frozenset(), depth_limit: int | None = None
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Yield (relative path, `stat`) of all below the folder, parents first; follow no links.

        Folders that cannot be read, or whose path is too long, are yielded without content.

        Args:
            without: names directly in this folder that are excluded.
            depth_limit: most folders in a path; what lies deeper is excluded. None: any number.
        """
        pending = [""]
        while pending:
            prefix = pending.pop()
            try:
                listed = self._entries_of(prefix)
            except OSError:
                continue
            below = []
            for name, status in listed:
                if not prefix and name in without:
                    continue
                yield prefix + name, status
                deep = depth_limit is not None and prefix.count("/") >= depth_limit
                if stat.S_ISDIR(status.st_mode) and not deep:
                    below.append(f"{prefix}{name}/")
            pending += reversed(below)

    def link_target(self, name: str) -> str:
        """Return a symbolic link's target as it is written; raise OSError for no link."""
        with self.parent_of(name) as (above, last):
            return os.readlink(last, dir_fd=above)

    def rename(self, name: str, target: "SafeFolder", new_name: str) -> None:
        """Move an entry to a name in `target`; replace a file or empty folder of the same kind."""
        with self.parent_of(name) as (above, last), target.parent_of(new_name) as (there, new):
            os.rename(last, new, src_dir_fd=above, dst_dir_fd=there)

    def link(self, name: str, new_name: str) -> None:
        """Create a hard link to a file in the folder, under a new name."""
        with self.parent_of(name) as (above, last), self.parent_of(new_name) as (there, new):
            os.link(last, new, src_dir_fd=above, dst_dir_fd=there, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Delete a file, link or whole tree in the folder; do nothing if it is missing.

        Works for trees of any depth, and for folders that their owner may not write.

        Raises:
            OSError: something cannot be deleted; the rest is.
        """
        try:
            with self.parent_of(name) as (above, last):
                _remove(above, last)
        except FileNotFoundError:
            return

    def free_bytes(self) -> int:
        """Return the bytes that are free for this user on the folder's file system."""
        free = os.fstatvfs(self._descriptor)
        return free.f_bavail * free.f_frsize

    def descriptor_path(self) -> str:
        """Return a path of this folder that stays valid while it is open, whatever is renamed."""
        return f"/proc/self/fd/{self._descriptor}"

    def _entries_of(self, prefix: str) -> list[tuple[str, os.stat_result]]:
        if not prefix:
            return self.entries()
        with self.folder(prefix[:-1]) as folder:
            return folder.entries()

    def _open(self, name: str, flags: int, mode: int = 0) -> int:
        return self._open_name(self._descriptor, plain_parts(name), flags, mode)

    def parent_of(self, name: str) -> "ParentOf":
        """Return a context manager that opens the parent of a name: (descriptor, last part).

        For system calls that this class does not offer.
        """
        return ParentOf(self._descriptor, plain_parts(name), self._open_name)


class ParentOf:
    """Context manager that opens the parent folder of a name; yields (descriptor, last part)."""

    def __init__(self, root: int, parts: list[str], open_name: OpenBeneath) -> None:
        self._root, self._parts, self._open_name = root, parts, open_name
        self._descriptor = -1

    def __enter__(self) -> tuple[int, str]:
        above = self._parts[:-1]
        self._descriptor = (
            self._open_name(self._root, above, FOLDER) if above else os.dup(self._root)
        )
        return self._descriptor, self._parts[-1]

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _remove(above: int, name: str) -> None:
    """Delete an entry and all below it, without recursion; continue after errors, then raise one.

    A folder that is not empty is moved to the top before its content is deleted: neither the depth
    of the tree nor the number of open files or the length of a path limits the work.
    """
    if not _is_folder(above, name):
        os.unlink(name, dir_fd=above)
        return
    failed: OSError | None = None
    top = _writable(above, name)
    try:
        pending = [""]
        while pending:
            current = pending.pop()
            try:
                pending += _empty(top, current)
                if current:
                    os.rmdir(current, dir_fd=top)
            except OSError as error:
                failed = error
    finally:
        os.close(top)
    if failed is None:
        os.rmdir(name, dir_fd=above)
        return
    raise failed


def _empty(top: int, name: str) -> list[str]:
    """Delete a folder's files and leaf subfolders; move others to ``top``; return their names."""
    folder = _writable(top, name) if name else os.dup(top)
    moved = []
    failed: OSError | None = None
    try:
        for entry, is_folder in _entries(folder):
            try:
                if not is_folder:
                    os.unlink(entry, dir_fd=folder)
                    continue
                if _removed_empty(folder, entry):
                    continue
                if name:
                    target = f"{_REMOVED}{secrets.token_hex(8)}"
                    os.close(_writable(folder, entry))  # its `..` changes
                    os.rename(entry, target, src_dir_fd=folder, dst_dir_fd=top)
                    moved.append(target)
                else:
                    moved.append(entry)
            except FileNotFoundError:  # deleted meanwhile
                continue
            except OSError as error:
                failed = error
    finally:
        os.close(folder)
    if failed is not None and not moved:
        raise failed
    return moved


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Return names and whether each is a folder; it costs no call per entry."""
    listed = os.open(".", _LIST, dir_fd=folder)
    try:
        with os.scandir(listed) as found:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    finally:
        os.close(listed)


def _removed_empty(above: int, name: str) -> bool:
    """Delete a folder without subfolders, with its files; return False if it has some or fails."""
    try:
        folder = _writable(above, name)
    except OSError:
        return False
    try:
        entries = _entries(folder)
        if any(is_folder for _, is_folder in entries):
            return False
        for entry, _ in entries:
            os.unlink(entry, dir_fd=folder)
        os.rmdir(name, dir_fd=above)
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _is_folder(above: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)


def _writable(above: int, name: str) -> int:
    """Open a folder's descriptor; give its owner read, write and search permission first."""
    descriptor = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=above)
    mode = os.fstat(descriptor).st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        try:
            place = Path(f"/proc/self/fd/{descriptor}")
            place.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
        except OSError:
            os.close(descriptor)
            raise
    return descriptor
