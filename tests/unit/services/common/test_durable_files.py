"""Replacement of files that survives a cut of power."""

import errno
import os
import stat
from pathlib import Path

import pytest

from svc_common.durable_files import (
    replace_durably,
    sync_folder,
    sync_tree,
    write_private,
    write_readable,
)
from svc_common.safe_folders import SafeFolder
from svc_common.storage.atomic_files import atomic_file


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
    draft = disk.watched.with_name("draft")
    draft.write_text("new")

    replace_durably(draft, disk.watched)

    assert disk.synced == [("draft", False), ("folder", True)]
    assert disk.watched.read_text() == "new"


def test_private_file_is_replaced_durably(disk: DiskRecord) -> None:
    write_private(disk.watched, "secret")

    assert disk.synced == [(".file.new", False), ("folder", True)]
    assert disk.watched.read_text() == "secret"
    assert stat.S_IMODE(disk.watched.stat().st_mode) == 0o600


def test_atomic_file_is_durable(disk: DiskRecord) -> None:
    with atomic_file(disk.watched) as file:
        file.write(b"all")

    assert [existed for _, existed in disk.synced] == [False, True]
    assert disk.synced[-1][0] == "folder"


def test_file_of_a_safe_folder_is_replaced_durably(disk: DiskRecord) -> None:
    with SafeFolder.open(disk.watched.parent) as folder:
        folder.replace_file("file", b"all")

    assert [existed for _, existed in disk.synced] == [False, True]
    assert disk.synced[-1][0] == "folder"


def test_tree_is_synchronised_with_all_its_files(disk: DiskRecord) -> None:
    top = disk.watched.parent
    (top / "below").mkdir()
    (top / "below" / "deep.py").write_text("")
    (top / "code.py").write_text("")
    (top / "link").symlink_to("/nowhere")

    sync_tree(top)

    assert {name for name, _ in disk.synced} == {"folder", "below", "deep.py", "code.py"}


def test_file_system_that_cannot_synchronise_folders_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errors.pop(), "no")

    errors = [errno.EIO, errno.EINVAL]
    monkeypatch.setattr(os, "fsync", fail)

    sync_folder(tmp_path)

    with pytest.raises(OSError, match="no"):
        sync_folder(tmp_path)


def test_file_for_other_users_is_readable_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_readable(tmp_path / "file", "text")
    finally:
        os.umask(before)

    assert (tmp_path / "file").read_text() == "text"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_folder_in_place_of_a_draft_keeps_no_file_from_being_written(tmp_path: Path) -> None:
    (tmp_path / ".secret.new" / "content").mkdir(parents=True)

    write_private(tmp_path / "secret", "text")

    assert (tmp_path / "secret").read_text() == "text"
    assert not (tmp_path / ".secret.new").exists()
