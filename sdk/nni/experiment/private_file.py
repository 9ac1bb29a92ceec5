"""Files that only this user can read."""

from __future__ import annotations

import os
from pathlib import Path

from nni.durable_files import replace_durably


def write_private(path: Path, text: str) -> None:
    """Write a private file atomically; a replaced file keeps its group and read permissions.

    A file that is replaced keeps its group and who else may read it: services of another user may
    have been let in on purpose.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        file.write(text)
    if path.exists():
        before = path.stat()
        if before.st_gid != draft.stat().st_gid:
            os.chown(draft, -1, before.st_gid)
        draft.chmod(0o600 | (before.st_mode & 0o044))
    replace_durably(draft, path)
