"""Mount of an experiment's shared storage on this machine."""

import os
import secrets
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from svc_common.errors import FailedPreconditionError, ServiceError
from svc_common.logs import get_logger
from svc_common.safe_folders import SafeFolder
from svc_common.storage.shared_storage import (
    MARK_FILE,
    SharedStorage,
    StorageKind,
    azure_config,
    experiment_folder,
    mount_command,
    unmount_command,
)

LIMIT_S: Final = 60.0
"""Longest run of a command that mounts or unmounts."""
MOUNT_VARIABLE: Final = "NNI_SHARED_MOUNT"
"""Variable of the commands that mount and of the daemons that they leave, such as that of
blobfuse2: whatever ends the daemons of trials recognises these by it."""
MOUNT_MARK: Final = secrets.token_hex(16)
"""Value of that variable, drawn by each process: trials do not know it."""
_ERROR_CHARACTERS: Final = 500
_MARK_LIMIT_BYTES: Final = 256


class SharedMount:
    """Mount of a storage for one experiment: found as it is, or made and removed again.

    The mark in the experiment's folder tells whether a folder is the storage that the manager sees,
    by whatever it was mounted. All methods block.

    Args:
        storage: what is mounted.
        experiment_id: whose mark is looked for.
        folder: where it is mounted.
        private_folder: for the configuration of blobfuse2 and its cache.
        variables: environment of the commands, without secrets.
    """

    def __init__(
        self,
        storage: SharedStorage,
        experiment_id: str,
        folder: Path,
        private_folder: Path,
        variables: Mapping[str, str],
    ) -> None:
        self._storage = storage
        self._mark = f"{experiment_folder(experiment_id)}/{MARK_FILE}"
        self._folder = folder
        self._private_folder = private_folder
        self._variables = dict(variables)
        self._lock = threading.Lock()
        self._made = False

    def ensure(self) -> None:
        """Mount the storage unless it is mounted; raise unless it then has the experiment's mark.

        Another agent of this machine may have made the mount that this one has found, and unmounts
        it at its end: files written then would stay on the disk of this machine, unseen.

        Raises:
            FailedPreconditionError: it cannot be mounted, or is not the one that the manager sees.
        """
        with self._lock:
            if self._is_there():
                return
            self.mount()
            if not self._is_there():
                raise FailedPreconditionError(
                    f"sharedStorage: {self._folder} is not the storage that the manager sees: "
                    f"it has no file {self._mark} with the mark of this experiment"
                    if self._storage.mark
                    else f"sharedStorage: {self._folder} is not mounted"
                )

    def mount(self) -> None:
        """Mount the storage on a new or empty folder; raise FailedPreconditionError otherwise.

        Raises:
            FailedPreconditionError: the folder cannot be made, or the command fails.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if any(self._folder.iterdir()):
                raise FailedPreconditionError(
                    f"sharedStorage: {self._folder} must be empty, or the storage that the manager "
                    "sees, mounted there already"
                )
            with tempfile.TemporaryDirectory(dir=self._private_folder) as place:
                config = Path(place) / "blobfuse2.yaml"
                if self._storage.kind is StorageKind.AZURE_BLOB:
                    cache = self._private_folder / "cache"
                    cache.mkdir(exist_ok=True)
                    config.touch(mode=0o600)
                    config.write_text(azure_config(self._storage, str(cache)), "utf-8")
                command = mount_command(
                    self._storage,
                    str(self._folder),
                    as_root=os.geteuid() == 0,
                    config_file=str(config),
                )
                self._run(command)
        except OSError as error:
            raise FailedPreconditionError(
                f"sharedStorage: {self._folder} cannot be made: {error.strerror}"
            ) from error
        self._made = True

    def unmount(self) -> None:
        """Unmount the storage if this object has mounted it; a failure is logged."""
        with self._lock:
            if not self._made:
                return
            self._made = False
            command = unmount_command(self._storage, str(self._folder), as_root=os.geteuid() == 0)
            try:
                self._run(command)
            except ServiceError as error:
                # Another agent of this machine may use it.
                get_logger().warning("shared storage stays mounted", error=error.message)

    def _is_there(self) -> bool:
        if not self._storage.mark:
            return self._folder.is_mount()
        expected = self._storage.mark.encode()
        with (
            suppress(OSError),
            SafeFolder.open(self._folder) as folder,
            folder.read_file(self._mark) as file,
        ):
            return file.read(_MARK_LIMIT_BYTES) == expected
        return False

    def _run(self, command: tuple[str, ...]) -> None:
        shown = shlex.join(command)
        try:
            done = subprocess.run(
                command,
                env={**self._variables, MOUNT_VARIABLE: MOUNT_MARK},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            )
        except FileNotFoundError as error:
            raise FailedPreconditionError(
                f"sharedStorage: {command[0]} is not installed on this machine: {shown}"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise FailedPreconditionError(
                f"sharedStorage: {shown} has not ended within {LIMIT_S:g} s"
            ) from error
        if done.returncode:
            words = done.stderr.decode("utf-8", "replace").strip()[-_ERROR_CHARACTERS:]
            raise FailedPreconditionError(
                f"sharedStorage: {shown} has failed: {words or f'status {done.returncode}'}; mount "
                "it by hand, or let the user of the agents use sudo without a password"
            )
