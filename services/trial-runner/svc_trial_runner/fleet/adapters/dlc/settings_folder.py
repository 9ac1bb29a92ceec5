"""Folder on the NAS with the settings of agents, which both this machine and containers mount."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from svc_common.durable_files import write_private
from svc_trial_runner.fleet.ports import PlatformError

_FOLDER: Final = "nni-agents-{installation}"
SETTINGS: Final = "settings.json"


class SettingsFolder:
    """Store of agents' settings files on the NAS. All methods block.

    A file can be read by its owner only, and is removed by its agent when that has read it.

    Args:
        mount: folder at which this machine mounts the NAS.
        installation: whose folder it is; that of another user of the NAS has another name.
    """

    def __init__(self, mount: str, installation: str) -> None:
        self._folder = Path(mount) / _FOLDER.format(installation=installation)

    def problem(self) -> str:
        """Return why settings cannot be written; empty: they can."""
        mount = self._folder.parent
        if not mount.is_dir():
            return "must be a folder of this machine, at which the NAS is mounted"
        if not os.access(mount, os.W_OK | os.X_OK):
            return "must be a folder that you may write to"
        return ""

    def write(self, name: str, content: bytes) -> None:
        """Write an agent's settings for their owner only, into its folder, made below the mount.

        Raises:
            PlatformError: they cannot be written.
        """
        folder = self._folder / name
        try:
            # Without parents: where the NAS is not mounted, no folder is made in its place.
            for one in (self._folder, folder):
                one.mkdir(mode=0o700, exist_ok=True)
            write_private(folder / SETTINGS, content.decode())
        except OSError as error:
            raise PlatformError(f"settings of agents cannot be written: {error}") from error

    def names(self) -> list[str]:
        """Return the sorted names of the agents that have a folder; empty if none can be read."""
        try:
            return sorted(one.name for one in self._folder.iterdir())
        except OSError:
            return []

    def remove(self, name: str) -> None:
        """Remove an agent's folder, and the common one if it is empty; errors are ignored."""
        shutil.rmtree(self._folder / name, ignore_errors=True)
        with suppress(OSError):
            self._folder.rmdir()


def path_in_container(mount: str, installation: str, name: str) -> str:
    """Return the path of an agent's settings in its container.

    Args:
        mount: folder at which containers mount the NAS.
        installation: see `SettingsFolder`.
        name: of the agent.
    """
    folder = _FOLDER.format(installation=installation)
    return f"{mount.rstrip('/')}/{folder}/{name}/{SETTINGS}"
