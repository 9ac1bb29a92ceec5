"""Folder of a machine that joins a pool: its id, and the folders of its agents."""

import fcntl
import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from svc_common.durable_files import write_private
from svc_common.errors import FailedPreconditionError
from svc_common.own_files import private_folder

DEFAULT: Final = "~/.nni/joined"
"""Folder below which each machine has a folder for each pool of each installation."""
_ID_FILE: Final = "machine-id"
_AGENTS: Final = "agents"
_LOCK: Final = "agent.lock"
_ID: Final = re.compile(r"[0-9a-f]{64}\Z")
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9._-]")
_AUTHORITY_DIGITS: Final = 16


def folder_name(authority_sha256: str, pool: str, host_name: str) -> str:
    """Return the name of a machine's folder; machines with a shared home have one each.

    Args:
        authority_sha256: of the installation's authority, in hexadecimal digits.
        pool: that the machine joins.
        host_name: of the machine.
    """
    parts = (authority_sha256[:_AUTHORITY_DIGITS], pool, host_name)
    return "-".join(_UNUSUAL.sub("_", part[:64]) for part in parts)


class MachineFolder:
    """Private folder of this machine for one pool of one installation.

    Args:
        folder: created if missing.

    Raises:
        FailedPreconditionError: it cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            for each in (folder, folder / _AGENTS):
                private_folder(each)
        except OSError as error:
            raise FailedPreconditionError(
                f"the folder {folder} cannot be used: {error.strerror}; name another one by "
                "--folder"
            ) from error

    def machine_id(self) -> str:
        """Return the secret id of this machine in the pool, drawn at the first call."""
        file = self._folder / _ID_FILE
        try:
            with suppress(FileNotFoundError):
                known = file.read_text("ascii").strip()
                if _ID.match(known):
                    return known
            drawn = secrets.token_hex(32)
            write_private(file, f"{drawn}\n")
        except (OSError, ValueError) as error:
            raise FailedPreconditionError(f"the file {file} cannot be used: {error}") from error
        return drawn

    def agent(self, name: str) -> Path:
        """Return the path of an agent's folder; remove folders of others that no process locks."""
        agents = self._folder / _AGENTS
        for other in agents.iterdir():
            if other.name != name and not _is_used(other):
                shutil.rmtree(other, ignore_errors=True)
        return agents / name


def _is_used(folder: Path) -> bool:
    """Return whether a process has the lock of an agent's folder; True if it is not known."""
    try:
        file = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
