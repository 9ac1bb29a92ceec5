import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nni_wire.folders import BUS_ROOM_BYTES
from svc_common.messaging.bus_disk import HaltSign, bus_trouble, disk_trouble, free_bytes


def test_a_disk_with_room_has_no_trouble(tmp_path: Path) -> None:
    assert disk_trouble(tmp_path, BUS_ROOM_BYTES) == ""
    assert list(tmp_path.iterdir()) == []


def test_disk_that_cannot_be_asked_has_no_room(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0
    assert free_bytes(tmp_path / "none") == 0
    assert "0 MB are free" in disk_trouble(tmp_path / "none", BUS_ROOM_BYTES)


def test_a_full_disk_says_how_much_is_to_be_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = BUS_ROOM_BYTES - 10 * 1024 * 1024 - 1
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    assert disk_trouble(tmp_path, BUS_ROOM_BYTES) == (
        f"the bus's disk is full: 53 MB are free for {tmp_path}; "
        "free 11 MB, and it goes on by itself"
    )


def test_a_disk_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(os, "open", refuse)

    assert "Read-only file system" in disk_trouble(tmp_path, BUS_ROOM_BYTES)


@pytest.fixture
def disk_without_inodes(tmp_path: Path) -> Iterator[Path]:
    """File system with free bytes and no free inodes; skip where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=256m,nr_inodes=4", "tmpfs", str(folder))
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        for number in range(3):  # the root has the fourth
            (folder / str(number)).touch()
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_disk_without_free_inodes_says_that_files_are_to_be_deleted(
    disk_without_inodes: Path,
) -> None:
    trouble = disk_trouble(disk_without_inodes, BUS_ROOM_BYTES)

    assert "No space left on device" in trouble
    assert "delete files" in trouble


def test_quota_that_is_used_up_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "posix_fallocate", refuse)

    assert "quota exceeded" in disk_trouble(tmp_path, BUS_ROOM_BYTES)
    assert "raise the quota" in disk_trouble(tmp_path, BUS_ROOM_BYTES)


def test_a_file_system_without_nameless_files_has_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(95, os.strerror(95))

    monkeypatch.setattr(os, "open", refuse)

    assert disk_trouble(tmp_path, BUS_ROOM_BYTES) == ""


def test_a_halted_bus_needs_more_room_than_one_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    sign = HaltSign.open(folder)
    usage = shutil.disk_usage(tmp_path)._replace(free=BUS_ROOM_BYTES - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert bus_trouble(folder) == ""

    sign.put_up()

    assert "63 MB are free" in bus_trouble(folder)
    monkeypatch.undo()
    assert bus_trouble(folder) == "the bus is being restarted: its disk was full"
    sign.take_down()
    assert bus_trouble(folder) == ""
    sign.close()


def test_folder_in_place_of_the_lock_file_is_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "bus"
    (tmp_path / "bus-halted.lock").mkdir()

    sign = HaltSign.open(folder)
    sign.close()

    assert (tmp_path / "bus-halted.lock").is_file()
    assert len(list(tmp_path.glob("bus-halted.lock.damaged-*"))) == 1


def test_a_bus_without_a_supervisor_has_not_halted(tmp_path: Path) -> None:
    assert bus_trouble(tmp_path) == ""
