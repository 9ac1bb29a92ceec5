"""Replacement of files that survives a cut of power."""

import os
from pathlib import Path

import pytest

from nni.durable_files import write_whole
from nni.experiment.private_file import write_private


class DiskRecord:
    """Record of what was synchronised, and of whether a name existed then."""

    def __init__(self, watched: Path) -> None:
        self.watched = watched
        self.synced: list[tuple[str, bool]] = []
        self._sync = os.fsync

    def fsync(self, descriptor: int) -> None:
        self._sync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        self.synced.append((path.name, self.watched.exists()))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskRecord:
    record = DiskRecord(tmp_path / "folder" / "file")
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(os, "fsync", record.fsync)
    return record


def test_content_is_on_the_disk_before_the_name_and_the_name_before_the_return(
    disk: DiskRecord,
) -> None:
    write_whole(disk.watched, "new")

    assert disk.synced == [("file.new", False), ("folder", True)]
    assert disk.watched.read_text() == "new"


def test_private_file_is_replaced_durably(disk: DiskRecord) -> None:
    write_private(disk.watched, "secret")

    assert disk.synced == [(".file.new", False), ("folder", True)]
    assert disk.watched.read_text() == "secret"
