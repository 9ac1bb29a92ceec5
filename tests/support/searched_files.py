"""Search of folders in which running services write."""

from __future__ import annotations

import contextlib
from pathlib import Path


def content_of(path: Path) -> bytes:
    """Return the content of a file; empty if it is none, or was deleted after it was listed."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_file():
            return path.read_bytes()
    return b""
