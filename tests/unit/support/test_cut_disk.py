"""File systems whose power is cut, as root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cut_disk import CutDisk, mounted_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[CutDisk]:
    with mounted_disk(tmp_path) as made:
        yield made


@contextmanager
def namespace_of_mounts() -> Iterator[None]:
    """Keep a namespace of mounts, as that of a container, with all that is mounted now."""
    with subprocess.Popen(
        ["unshare", "--mount", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"begun\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"begun\n"
        yield
        process.stdin.close()


def test_what_was_synchronised_survives_the_cut(disk: CutDisk) -> None:
    (disk.path / "kept").write_text("kept")
    disk.synchronise()

    disk.cut()
    disk.restore()

    assert (disk.path / "kept").read_text() == "kept"


def test_disk_works_again_although_a_container_of_another_test_has_it_mounted(
    disk: CutDisk,
) -> None:
    with namespace_of_mounts():
        disk.cut()
        disk.restore()

        (disk.path / "file").write_text("written")
        disk.synchronise()
        assert (disk.path / "file").read_text() == "written"
