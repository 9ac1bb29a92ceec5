"""Atomic writes of files, and the mapping of their errors."""

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from svc_common.durable_files import replace_durably
from svc_common.errors import OutOfRoomError, ServiceError, UnavailableError

TEMPORARY: Final = ".new-"
"""Prefix of the names of unfinished files; no key has a part that begins so."""
CHUNK_BYTES: Final = 1024 * 1024
"""Size of the pieces in which files are copied."""
_OUT_OF_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def atomic_file(path: Path, *, synced: bool = True) -> Iterator[BinaryIO]:
    """Yield a temporary file; after the block rename it to `path`, or remove it on an error.

    The folder must exist.

    Args:
        path: of the file.
        synced: false: the file survives the end of this process, but a cut of power may leave it
            out or empty.
    """
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            yield file
        if synced:
            replace_durably(Path(name), path)
        else:
            Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def storage_error(error: OSError) -> ServiceError:
    """Convert an OSError to OutOfRoomError (no space) or UnavailableError."""
    if error.errno in _OUT_OF_SPACE:
        return OutOfRoomError(
            f"no space to store {error.filename or 'the blob'}: {error.strerror}; free disk space"
        )
    return UnavailableError(f"the blob store cannot be used: {error}")
