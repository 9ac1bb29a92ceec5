"""Replacement of files that survives a cut of power.

A rename can reach the disk before the content of the file: after a cut of power the name then
points to an empty file. So the content is synchronised first, and the folder, which holds the name,
after.
"""

import errno
import os
from pathlib import Path
from typing import Final

from svc_common.own_files import place_for_file

_NOT_SUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS})
"""Errors of file systems that cannot synchronise a folder."""


def replace_durably(draft: Path, path: Path) -> None:
    """Sync a draft file, rename it over `path` in the same folder, and sync the folder.

    Raises:
        OSError: it cannot be synchronised or renamed; then `path` is as before.
    """
    _sync_path(draft)
    draft.replace(path)
    sync_folder(path.parent)


def write_private(path: Path, text: str) -> None:
    """Write a text file with mode 0600 through a synced draft that replaces it in one step.

    Raises:
        OSError: it cannot be written; then `path` is as before.
    """
    _write(path, text, 0o600)


def write_readable(path: Path, text: str) -> None:
    """Write a text file with mode 0644 through a synced draft that replaces it in one step.

    For a folder that only trusted processes can enter, some of them as other users.

    Raises:
        OSError: it cannot be written; then `path` is as before.
    """
    _write(path, text, 0o644)


def _write(path: Path, text: str, mode: int) -> None:
    draft = path.with_name(f".{path.name}.new")
    place_for_file(draft)
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        file.write(text)
        os.fchmod(descriptor, mode)
    replace_durably(draft, path)


def sync_folder(folder: Path | int) -> None:
    """Sync a folder's entries to the disk; ignore file systems that cannot do that.

    Args:
        folder: path, or descriptor that may be for its path only (`O_PATH`).

    Raises:
        OSError: the disk has failed.
    """
    try:
        if isinstance(folder, int):
            _sync_path(Path(), within=folder)
        else:
            _sync_path(folder)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise


def sync_tree(folder: Path) -> None:
    """Sync all regular files and folders below a folder to the disk, without following links.

    Raises:
        OSError: the disk has failed.
    """
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above) / name
            if not path.is_symlink():
                _sync_path(path)
        sync_folder(Path(above))


def _sync_path(path: Path, within: int | None = None) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=within)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
