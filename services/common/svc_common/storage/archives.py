"""Tar archives of folders; archives of untrusted origin are unpacked safely."""

import shutil
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path

from svc_common.errors import ServiceError


class ArchiveError(ServiceError):
    """An archive is damaged, too large, or has a member outside of its folder."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of an archive."""

    files: int
    """Number of files and folders."""
    size_bytes: int
    """Size of all files, unpacked."""


def extract(archive: Path, folder: Path, limits: ArchiveLimits) -> None:
    """Unpack a tar archive (plain, gzip, xz) of regular files and folders.

    Args:
        archive: file of any origin.
        folder: is created; must not exist.
        limits: larger archives are refused.

    Raises:
        ArchiveError: the archive is damaged, exceeds a limit, or has a member that is a device,
            lies outside of the folder, or links out of it.
    """
    folder.mkdir()
    try:
        _extract(archive, folder, limits)
    except (tarfile.TarError, EOFError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ArchiveError(f"the archive cannot be unpacked: {error}") from error
    except ArchiveError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _extract(archive: Path, folder: Path, limits: ArchiveLimits) -> None:
    files = size_bytes = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            files += 1
            size_bytes += member.size
            if files > limits.files or size_bytes > limits.size_bytes:
                raise ArchiveError(
                    f"an archive must have at most {limits.files} files and "
                    f"{limits.size_bytes >> 20} MB"
                )
            tar.extract(member, folder, filter="data")


def pack(folder: Path, archive: Path, without: frozenset[str] = frozenset()) -> int:
    """Write a folder to a plain tar archive, without sockets and devices; links stay links.

    Owners are not recorded. Times are, since programs select the newest file by them.

    Args:
        folder: folder to pack.
        archive: file that is written; outside of the folder.
        without: names directly in the folder that are excluded.

    Returns:
        Number of files and folders in the archive.

    Raises:
        OSError: a file cannot be read or written.
    """
    count = 0
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.iterdir()):
            if path.name not in without:
                count += _add(tar, path, path.name)
    return count


def _add(tar: tarfile.TarFile, path: Path, name: str) -> int:
    mode = path.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        return 0
    member = tar.gettarinfo(str(path), name)
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    if member.isreg():
        with path.open("rb") as content:
            tar.addfile(member, content)
    else:
        tar.addfile(member)
    if not member.isdir():
        return 1
    return 1 + sum(_add(tar, one, f"{name}/{one.name}") for one in sorted(path.iterdir()))
