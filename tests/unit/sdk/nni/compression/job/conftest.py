"""Fixtures of the tests of compression jobs."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compression_job import MODULE, write_code


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder with the code of the job; the interpreter forgets its module afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield write_code(tmp_path / "code")
    sys.modules.pop(MODULE, None)
