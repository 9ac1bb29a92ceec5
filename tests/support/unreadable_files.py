"""Files that cannot be read, as those on a damaged part of a disk; root reads all others."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest


def make_unreadable(monkeypatch: pytest.MonkeyPatch, path: Path, number: int = errno.EIO) -> None:
    """Let reads of the file at a path fail with an error number."""
    read_bytes, read_text = Path.read_bytes, Path.read_text

    def fail() -> None:
        raise OSError(number, os.strerror(number), str(path))

    def bytes_of(asked: Path) -> bytes:
        if asked == path:
            fail()
        return read_bytes(asked)

    def text_of(asked: Path, *arguments: Any, **options: Any) -> str:
        if asked == path:
            fail()
        return read_text(asked, *arguments, **options)

    monkeypatch.setattr(Path, "read_bytes", bytes_of)
    monkeypatch.setattr(Path, "read_text", text_of)
