"""Unix sockets of bus and manager, which a port forward creates anew at each reconnection."""

import os
import re
from pathlib import Path
from typing import Final

from svc_common.errors import UnavailableError
from svc_trial_runner.agent_file import BUS_SOCKET, MANAGER_SOCKET

CURRENT_NAME: Final = "current"
"""File with the name of the subfolder of the present connection."""
_NAME_LIMIT_BYTES: Final = 256
_FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


class ForwardedSockets:
    """Folder of forwarded Unix sockets; each connection looks up the current subfolder.

    A cut connection leaves its sockets, and a new one cannot bind them again: so each has a
    subfolder of its own.

    Args:
        folder: with the file `current`, closed to other users.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def bus(self) -> Path:
        """Return the path of the current bus socket; point the manager's link to the same folder.

        The manager's address is thereby constant: gRPC resolves the link when it connects.

        Raises:
            UnavailableError: there is no present connection.
        """
        try:
            with (self._folder / CURRENT_NAME).open("rb") as file:
                name = file.read(_NAME_LIMIT_BYTES).decode().strip()
            if not _FOLDER_NAME.match(name):
                raise UnavailableError(f"{self._folder / CURRENT_NAME} names no folder: {name!r}")
            self._link(name)
        except (OSError, UnicodeDecodeError) as error:
            raise UnavailableError(f"no forward is connected: {error}") from error
        return self._folder / name / BUS_SOCKET

    def _link(self, name: str) -> None:
        link, target = self._folder / MANAGER_SOCKET, f"{name}/{MANAGER_SOCKET}"
        if link.is_symlink() and os.readlink(link) == target:  # noqa: PTH115 - compared as written
            return
        draft = self._folder / f".{MANAGER_SOCKET}.{os.getpid()}"
        draft.unlink(missing_ok=True)
        draft.symlink_to(target)
        draft.replace(link)
