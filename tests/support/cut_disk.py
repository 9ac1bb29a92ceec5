"""File system whose power can be cut: ext4 in a file, for tests that run as root."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support import wait

_SIZE_BYTES: Final = 1024 * 1024 * 1024
_SHUTDOWN: Final = 0x8004587D
"""`EXT4_IOC_SHUTDOWN`: the file system takes no more writes, and drops those it has not made."""
_WITHOUT_FLUSH: Final = 2
"""Drop the part of its journal that is not on the disk, too."""
_TIMEOUT_S: Final = 60


class CutDisk:
    """Mounted file system; what is not synchronised when its power is cut is gone.

    Args:
        folder: for the image and the mount point.
    """

    def __init__(self, folder: Path) -> None:
        self._image = folder / "disk.img"
        self._copy = folder / "copy.img"
        self.path = folder / "disk"
        """Mount point."""

    def make(self) -> None:
        """Make the file system and mount it.

        Raises:
            subprocess.CalledProcessError: this machine cannot.
        """
        self.path.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(_SIZE_BYTES)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self._mount()

    def cut(self) -> None:
        """Cut the power: from now on every access fails.

        Raises:
            OSError: the kernel cannot do this.
        """
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(descriptor)

    def restore(self) -> None:
        """Mount it again, as after a start of the machine; no process may use it."""
        self._unmount()
        # A copy: a namespace of another test that began while the disk was mounted has it mounted
        # until that test ends, and the kernel would mount the one without power again.
        _run("cp", "--sparse=always", str(self._image), str(self._copy))
        self._copy.replace(self._image)
        self._mount()

    def synchronise(self) -> None:
        """Write all that processes have written so far."""
        _run("sync", "--file-system", str(self.path))

    def copy(self) -> None:
        """Copy the image while it is in use, piece by piece, as a backup of a machine does."""
        _run("cp", "--sparse=always", str(self._image), str(self._copy))

    def restore_copy(self) -> None:
        """Mount the copy in its place; no process may use the disk."""
        self._unmount()
        self._copy.replace(self._image)
        self._mount()

    def remove(self) -> None:
        """Unmount it for good."""
        subprocess.run(["umount", "--lazy", str(self.path)], check=False, timeout=_TIMEOUT_S)
        self._image.unlink(missing_ok=True)
        self._copy.unlink(missing_ok=True)

    def _unmount(self) -> None:
        # The kernel closes the files of a killed process after it has taken them off its list.
        command = ["umount", str(self.path)]
        wait.until(
            lambda: subprocess.run(command, check=False, capture_output=True).returncode == 0,
            _TIMEOUT_S,
            f"no process uses {self.path}",
        )

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S)


@contextmanager
def mounted_disk(folder: Path) -> Iterator[CutDisk]:
    """Yield a disk; skip the test with the reason where none can be mounted and cut."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    disk = CutDisk(folder)
    try:
        try:
            disk.make()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no file system can be mounted here: {error.stderr.decode().strip()}")
        yield disk
    finally:
        disk.remove()
