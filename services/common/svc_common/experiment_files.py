"""Files of an experiment's folder, in which trials write what they like: links too."""

import os
import stat
from io import FileIO
from pathlib import Path
from typing import BinaryIO


def open_inside(root: Path, path: Path) -> BinaryIO:
    """Open a regular file below ``root`` for reading.

    A trial may put a link in the place of its output. It would be read with the rights of this
    process, which has secrets that the trial must not see: links that lead elsewhere are as good
    as no file. What was opened is looked at, not its name, which may change meanwhile.

    Args:
        root: the experiment's folder.
        path: the file.

    Raises:
        FileNotFoundError: there is no such file, or it is no regular file, or a link.
        OSError: it cannot be read.
    """
    # NONBLOCK: to open a pipe would wait for its writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if path.is_symlink():
            raise FileNotFoundError(path) from error
        raise
    file = os.fdopen(descriptor, "rb")
    real = Path(f"/proc/self/fd/{descriptor}").readlink()
    if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not real.is_relative_to(root.resolve()):
        file.close()
        raise FileNotFoundError(path)
    return file


def append_to(path: Path) -> FileIO:
    """Open a file for appending; it is made if it is missing. A link in its place is not followed.

    Raises:
        OSError: it cannot be opened, or is a link.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, 0o644)

    return FileIO(path, "a", opener=opener)
