"""Replacement of files that survives a cut of power: the old or the new content, never half."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace a file atomically, by a draft of the suffix `.new` beside it; one writer at a time.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_suffix(".new")
    draft.write_text(text, encoding="utf-8")
    replace_durably(draft, path)


def replace_durably(draft: Path, path: Path) -> None:
    """Rename a complete draft in the same folder to its name, once its content is on the disk.

    Without the first synchronisation the name can point to an empty file after a cut of power,
    and without the second it can be gone.

    Raises:
        OSError: it cannot be synchronised or renamed.
    """
    _synchronise(draft)
    draft.replace(path)
    _synchronise(path.parent)


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
