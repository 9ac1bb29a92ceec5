import errno
from pathlib import Path

import pytest

from svc_common.errors import OutOfRoomError, ResourceExhaustedError, UnavailableError
from svc_common.storage.atomic_files import atomic_file, storage_error


def test_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    place = tmp_path / "file"
    with atomic_file(place) as file:
        file.write(b"all")
        assert not place.exists()

    assert place.read_bytes() == b"all"


def test_failed_write_keeps_the_former_content(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"old")

    def fail_half_way() -> None:
        with atomic_file(place) as file:
            file.write(b"ha")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()

    assert place.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [place]


def test_full_disk_is_distinguished_from_other_errors() -> None:
    full = storage_error(OSError(errno.ENOSPC, "No space left on device", "/data/x"))
    other = storage_error(OSError(errno.EACCES, "Permission denied", "/data/x"))

    assert isinstance(full, ResourceExhaustedError)
    assert isinstance(full, OutOfRoomError)
    assert "free disk space" in full.message
    assert isinstance(other, UnavailableError)


def test_file_that_is_not_synced_appears_when_it_is_complete(tmp_path: Path) -> None:
    place = tmp_path / "file"
    with atomic_file(place, synced=False) as file:
        file.write(b"all")
        assert not place.exists()

    assert place.read_bytes() == b"all"
    assert list(tmp_path.iterdir()) == [place]
