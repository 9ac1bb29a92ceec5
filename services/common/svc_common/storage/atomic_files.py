"""Files that appear whole or not at all, and what goes wrong with them."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from svc_common.errors import ResourceExhaustedError, ServiceError, UnavailableError

TEMPORARY: Final = ".new-"
"""Start of the names of files that are not whole yet; no key has such a part."""
CHUNK_BYTES: Final = 1024 * 1024
"""Copied at once."""
_OUT_OF_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write; it takes the place of `path` when the block ends without an error.

    The folder must exist.
    """
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            yield file
        os.replace(name, path)  # noqa: PTH105 - a name, not a Path
    finally:
        Path(name).unlink(missing_ok=True)


def storage_error(error: OSError) -> ServiceError:
    """Give the error that a caller can act on."""
    if error.errno in _OUT_OF_ROOM:
        return ResourceExhaustedError(
            f"no room to store {error.filename or 'the bytes'}: {error.strerror}; free disk space"
        )
    return UnavailableError(f"the store of bytes cannot be used: {error}")
