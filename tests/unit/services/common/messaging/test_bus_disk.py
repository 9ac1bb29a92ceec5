import os
import shutil
from pathlib import Path

import pytest

from nni_wire.folders import BUS_ROOM_BYTES
from svc_common.messaging.bus_disk import disk_trouble, free_bytes


def test_a_disk_with_room_has_no_trouble(tmp_path: Path) -> None:
    assert disk_trouble(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


def test_disk_that_cannot_be_asked_has_no_room(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0
    assert free_bytes(tmp_path / "none") == 0
    assert "0 MB are free" in disk_trouble(tmp_path / "none")


def test_a_full_disk_says_how_much_is_to_be_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = BUS_ROOM_BYTES - 10 * 1024 * 1024 - 1
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    assert disk_trouble(tmp_path) == (
        f"the bus's disk is full: 53 MB are free for {tmp_path}; "
        "free 11 MB, and it goes on by itself"
    )


def test_a_disk_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(os, "open", refuse)

    assert "Read-only file system" in disk_trouble(tmp_path)


def test_a_file_system_without_nameless_files_has_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(95, os.strerror(95))

    monkeypatch.setattr(os, "open", refuse)

    assert disk_trouble(tmp_path) == ""
