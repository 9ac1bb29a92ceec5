"""Folder of an agent that a fleet has started: one process at a time, removed on request."""

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import Final

from svc_common.errors import FailedPreconditionError
from svc_common.logs import get_logger
from svc_common.own_files import private_folder
from svc_trial_runner.agent_file import AUTHORITY_NAME

_LOCK: Final = "agent.lock"
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""Errors of a file system without locks."""


class AgentHome:
    """Private folder of one agent, locked while its process runs.

    Homes are often shared between machines, and an agent that was given up may still run.

    Args:
        folder: of the agent.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = -1

    def open(self, authority: str = "") -> None:
        """Create and lock this home's folder, raise if in use; write the certificate, if any.

        Args:
            authority: certificate in PEM; empty: no file is written.

        Raises:
            FailedPreconditionError: the folder cannot be written, or another agent has it.
        """
        try:
            private_folder(self._folder)
            self._lock = self._locked_file()
            if authority:
                (self._folder / AUTHORITY_NAME).write_text(authority, "ascii")
        except (OSError, UnicodeEncodeError) as error:
            raise FailedPreconditionError(
                f"the folder {self._folder} of the agent cannot be used: {error}"
            ) from error

    def _locked_file(self) -> int:
        """Open the lock file and lock it where locks exist; raise if another agent has it."""
        file = os.open(
            self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            raise FailedPreconditionError(
                f"another agent of this name uses {self._folder}; end it first"
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(file)
                raise
            get_logger().warning("folder not locked", folder=str(self._folder), error=str(error))
        return file

    def close(self, *, remove: bool) -> None:
        """Release the folder, and remove it with everything in it if ``remove``."""
        if self._lock < 0:
            return
        if remove:
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1
