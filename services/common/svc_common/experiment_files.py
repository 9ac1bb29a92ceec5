"""Safe access to files of an experiment's folder, in which trials may place links."""

import os
import stat
from io import FileIO
from pathlib import Path
from typing import BinaryIO


def open_inside(root: Path, path: Path) -> BinaryIO:
    """Open a regular file below ``root`` for reading.

    A trial may replace its output by a link, which would be read with the rights of this process;
    the process may read secrets that the trial must not see. A link out of the folder is therefore
    treated as a missing file. The opened file is checked, not its name, which may change meanwhile.

    Args:
        root: the experiment's folder.
        path: the file.

    Raises:
        FileNotFoundError: the file does not exist, is no regular file, or is a link.
        OSError: it cannot be read.
    """
    # NONBLOCK: opening a pipe would wait for its writer.
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
    """Open a file for appending, creating it if it is missing; do not follow a link.

    Raises:
        OSError: the file cannot be opened, or is a link.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, 0o644)

    return FileIO(path, "a", opener=opener)
