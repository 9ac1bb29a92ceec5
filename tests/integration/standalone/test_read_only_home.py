"""A home on a disk that an error has made read-only."""

from pathlib import Path

from svc_standalone.endpoint import Lock
from tests.support.faulty_disks import faulty_disk


def test_locks_can_be_asked_on_a_read_only_disk(tmp_path: Path) -> None:
    with faulty_disk(tmp_path / "image", tmp_path / "home", 8) as disk:
        path = disk.folder / "supervisor.lock"
        lock = Lock.take(path)
        disk.break_off()

        assert Lock.try_take(path) is None
        lock.release()
        free = Lock.try_take(path)

        assert free is not None
        free.release()
