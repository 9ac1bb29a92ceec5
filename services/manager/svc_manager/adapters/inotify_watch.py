"""`FileWatches` over inotify, without polling."""

import asyncio
import ctypes
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from svc_common.errors import NotFoundError, UnavailableError

# IN_MODIFY, IN_CLOSE_WRITE, IN_DELETE_SELF, IN_MOVE_SELF
_CHANGES: Final = 0x2 | 0x8 | 0x400 | 0x800
_READ_BYTES: Final = 65536

_libc = ctypes.CDLL(None, use_errno=True)


class InotifyWatch:
    """Watch of one file by Linux inotify; `async with` starts it, `changed` waits for a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._event = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Start the inotify watch and read its events on the loop; raise if the file is missing.

        Raises:
            NotFoundError: there is no such file, or it cannot be watched.
            UnavailableError: the system gives no further inotify instance.
        """
        self._descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise UnavailableError("no file can be watched: " + os.strerror(ctypes.get_errno()))
        if _libc.inotify_add_watch(self._descriptor, os.fsencode(self._path), _CHANGES) < 0:
            os.close(self._descriptor)
            raise NotFoundError("file", str(self._path))
        asyncio.get_running_loop().add_reader(self._descriptor, self._readable)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the watch's reader from the loop, and close its inotify descriptor."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    async def changed(self) -> None:
        """Wait until the file changes after the last call, or after the start of the watch."""
        await self._event.wait()
        self._event.clear()

    def _readable(self) -> None:
        os.read(self._descriptor, _READ_BYTES)
        self._event.set()


class InotifyWatches:
    """Factory of inotify watches, for readers that follow a growing log file."""

    def watch(self, path: Path) -> InotifyWatch:
        """Return a watch of a file; `async with` starts it, or raises if the file is missing."""
        return InotifyWatch(path)
