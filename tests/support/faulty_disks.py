"""File systems of their own for tests: filled, freed, made read-only by an error, and repaired.

Each is an ext4 image behind a loop device, mounted at a folder. Only root can mount it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

_MEBIBYTE: Final = 1024 * 1024
_BALLAST: Final = ".ballast"
_PIECE: Final = bytes(64 * 1024)


class FaultyDisk:
    """File system mounted at a folder.

    Args:
        image: file of the image.
        folder: where it is mounted.
    """

    def __init__(self, image: Path, folder: Path) -> None:
        self._image = image
        self.folder = folder

    def fill(self) -> None:
        """Use up all space and all inodes' blocks: nothing can be written from now on."""
        with (self.folder / _BALLAST).open("ab", buffering=0) as file:
            for size in (len(_PIECE), 512):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(_PIECE[:size])

    def free(self) -> None:
        """Give the space back that `fill` used up."""
        (self.folder / _BALLAST).unlink()

    def break_off(self) -> None:
        """Make it read-only, as the kernel does after an error of the device.

        What was written before is on the disk: this is no power cut.
        """
        _run("sync", "--file-system", str(self.folder))
        _run("mount", "-o", "remount,abort", str(self.folder))

    def repair(self) -> None:
        """Check and mount it again, under the processes that use it."""
        _run("umount", "--lazy", str(self.folder))
        # A copy: as long as a process has a file open, the kernel would mount the broken one again.
        copy = self._image.with_suffix(".repaired")
        shutil.copyfile(self._image, copy)
        self._image.unlink()
        self._image = copy
        subprocess.run(["fsck.ext4", "-y", str(copy)], capture_output=True, check=False)
        self.mount()

    def mount(self) -> None:
        """Mount it."""
        _run("mount", "-o", "loop", str(self._image), str(self.folder))

    def remove(self) -> None:
        """Unmount and delete it."""
        _run("umount", "--lazy", str(self.folder))
        self._image.unlink()


@contextmanager
def faulty_disk(image: Path, folder: Path, megabytes: int) -> Iterator[FaultyDisk]:
    """Yield an empty file system that is mounted at a folder; skip the test if that is forbidden.

    Args:
        image: where its content is; removed at the end.
        folder: made if missing.
        megabytes: its size.
    """
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("only root can mount a file system of its own")
    folder.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(megabytes * _MEBIBYTE)
    # No blocks reserved for root: the disk is as full for this test as for a user.
    _run("mkfs.ext4", "-q", "-m", "0", str(image))
    disk = FaultyDisk(image, folder)
    try:
        disk.mount()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this machine mounts no image: {error.stderr}")
    try:
        (folder / "lost+found").rmdir()
        yield disk
    finally:
        disk.remove()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
