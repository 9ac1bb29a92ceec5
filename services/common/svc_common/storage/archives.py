"""Tar archives of folders: links are packed as files; any archive is unpacked safely.

Archives are read by `nni_wire.tar_reader`, not by `tarfile`: what that follows, and what it takes
from a header, differs between patch versions of Python, and several write outside of the folder.
"""

import os
import posixpath
import stat
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from nni_wire.tar_reader import Kind, Member, TarError, TarReader
from svc_common.errors import ServiceError
from svc_common.safe_folders import DEPTH_LIMIT, SafeFolder

_CHUNK_BYTES: Final = 1024 * 1024
_LINKS: Final = 8
"""Maximum length of a chain of links to a file that is packed."""
_SHOWN: Final = 3
"""Number of refused members that an error names."""


class ArchiveError(ServiceError):
    """Error: an archive is damaged, too large, or has members other than files and folders."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of an archive to unpack: number of entries and total unpacked size."""

    files: int
    """Number of files and folders."""
    size_bytes: int
    """Size of all files, unpacked."""


def extract(archive: Path, folder: Path, limits: ArchiveLimits) -> None:
    """Unpack an untrusted tar archive into a new folder; remove all if it breaks a rule.

    Owners and special modes are not restored; the executable bit and times of files are. An
    absolute name stays inside, without its first slash.

    Args:
        archive: file of any origin.
        folder: is created; must not exist. The path of its parent is trusted.
        limits: larger archives are refused.

    Raises:
        ArchiveError: the archive is damaged, exceeds a limit, has a member outside of the folder,
            two of one name, one in more than 100 folders, or one that is no regular file or folder.
            Nothing is left.
        OSError: the folder exists, or its parent is missing.
    """
    with SafeFolder.open(folder.parent) as parent:
        parent.create_folder(folder.name)
        try:
            with archive.open("rb") as file, parent.folder(folder.name) as target:
                _Extraction(target, limits).run(TarReader(file))
        except (TarError, OSError) as error:
            parent.remove(folder.name)
            raise ArchiveError(f"the archive cannot be unpacked: {error}") from error
        except BaseException:
            parent.remove(folder.name)
            raise


class _Extraction:
    """One unpacking of an archive into a folder; checks names, kinds and limits as it writes."""

    def __init__(self, target: SafeFolder, limits: ArchiveLimits) -> None:
        self._target = target
        self._limits = limits
        self._folders: dict[str, int | None] = {}
        """Created folders, with the times that they get; None: none."""
        self._files = 0
        self._size_bytes = 0

    def run(self, reader: TarReader) -> None:
        """Write all archive members to the folder; raise if any is no regular file or folder."""
        refused: list[Member] = []
        try:
            for member in reader:
                if member.kind is Kind.OTHER:
                    refused.append(member)
                if not refused:
                    self._write(member, reader)
                else:  # only to say what else is there
                    self._count(1, member.size_bytes)
        except (TarError, ArchiveError):
            if not refused:
                raise
        if refused:
            raise TarError(_refusal(refused))
        # Last, since each file that is written into a folder changes its time.
        for name, time_ns in self._folders.items():
            if time_ns is not None:
                with self._target.folder(name) as folder:
                    os.utime(folder.descriptor_path(), ns=(time_ns, time_ns))

    def _write(self, member: Member, reader: TarReader) -> None:
        name = "/".join(part for part in member.name.split("/") if part not in {"", "."})
        if ".." in name.split("/"):
            raise TarError(f"it has a member outside of its folder: {member.name[:200]!r}")
        if name.count("/") > DEPTH_LIMIT:
            raise TarError(f"it has a member in more than {DEPTH_LIMIT} folders: {name[:200]!r}")
        if member.kind is Kind.FOLDER:
            if name:
                self._make_folders(name)
                self._folders[name] = member.time_ns
            return
        self._count(1, member.size_bytes)
        above = posixpath.dirname(name)
        if above:
            self._make_folders(above)
        try:
            file = self._target.create_file(name)
        except FileExistsError as error:
            raise TarError(f"it has two members of the name {name[:200]!r}") from error
        with file:
            reader.copy_content(file)
            file.flush()
            os.fchmod(file.fileno(), 0o755 if member.executable else 0o644)
            if member.time_ns is not None:
                os.utime(file.fileno(), ns=(member.time_ns, member.time_ns))

    def _make_folders(self, name: str) -> None:
        """Create the folders of a path that are missing; count each against the limit."""
        parts = name.split("/")
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            if above not in self._folders:
                self._count(1, 0)
                try:
                    self._target.create_folder(above)
                except FileExistsError as error:
                    raise TarError(f"it has a file and a folder {above[:200]!r}") from error
                self._folders[above] = None

    def _count(self, files: int, size_bytes: int) -> None:
        self._files += files
        self._size_bytes += size_bytes
        limits = self._limits
        if self._files > limits.files or self._size_bytes > limits.size_bytes:
            raise ArchiveError(
                f"an archive must have at most {limits.files} files and "
                f"{limits.size_bytes >> 20} MB"
            )


def _refusal(refused: list[Member]) -> str:
    shown = ", ".join(f"{member.description} {member.name[:100]!r}" for member in refused[:_SHOWN])
    more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
    return (
        f"it may hold regular files and folders only, and also holds {shown}{more}; "
        "pack the files that links lead to instead of the links"
    )


def pack(folder: Path, archive: Path, without: frozenset[str] = frozenset()) -> int:
    """Pack a folder as tar: links to its files as files, others not; return the number of entries.

    A link to a regular file in the same folder is packed as that file. Other links, sockets and
    devices are left out, as is what lies in more than 100 folders. Owners are not recorded. Times
    are, since programs select the newest file by them.

    Args:
        folder: folder to pack; its path is trusted, its content is not.
        archive: file that is written; outside of what is packed.
        without: names directly in the folder that are excluded.

    Returns:
        Number of files and folders in the archive.

    Raises:
        OSError: a file cannot be read or written.
    """
    count = 0
    with (
        SafeFolder.open(folder) as source,
        tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, status in source.walk(without, DEPTH_LIMIT):
            if stat.S_ISDIR(status.st_mode):
                tar.addfile(_header(name, status))
                count += 1
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                count += _add_file(tar, source, name)
    return count


def _add_file(tar: tarfile.TarFile, source: SafeFolder, name: str) -> int:
    """Add a file, or a link's target, to a tar archive; return 1; 0: gone, or a link out of it."""
    real = name
    for _ in range(_LINKS):
        status = source.status(real)
        if status is None or not stat.S_ISLNK(status.st_mode):
            break
        target = ""
        with suppress(OSError):  # deleted meanwhile
            target = source.link_target(real)
        real = posixpath.normpath(posixpath.join(posixpath.dirname(real), target))
    try:
        content = source.read_file(real)
    except FileNotFoundError:  # a link elsewhere, or deleted meanwhile
        return 0
    with content:
        # The opened file is described, not its name, which may be another file's by now.
        header = _header(name, os.fstat(content.fileno()))
        tar.addfile(header, _Padded(content, header.size))  # type: ignore[arg-type] # it is read
    return 1


class _Padded:
    """File reader of a fixed number of bytes; zeros replace those a shrunk file lacks."""

    def __init__(self, file: BinaryIO, size_bytes: int) -> None:
        self._file = file
        self._left = size_bytes

    def read(self, count: int) -> bytes:
        """Read up to ``count`` of the remaining bytes; pad with zeros if the file has shrunk."""
        wanted = min(count, self._left)
        self._left -= wanted
        return self._file.read(wanted).ljust(wanted, b"\0")


def _header(name: str, status: os.stat_result) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.mode = stat.S_IMODE(status.st_mode)
    header.mtime = status.st_mtime
    if stat.S_ISDIR(status.st_mode):
        header.type = tarfile.DIRTYPE
    else:
        header.size = status.st_size
    return header
