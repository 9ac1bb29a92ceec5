"""Shared storage of experiments on the manager's machine: its mark, and the outputs in it."""

import asyncio
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import FailedPreconditionError, ResourceExhaustedError
from svc_common.logs import get_logger
from svc_common.own_files import private_folder
from svc_common.safe_folders import SafeFolder
from svc_common.storage.mount_table import MOUNT_TABLE, unmounted_point
from svc_common.storage.shared_mounts import SharedMount
from svc_common.storage.shared_storage import (
    MARK_FILE,
    MARK_OPTION,
    OPTION,
    OUTPUT_FOLDER,
    LocalMount,
    SharedStorage,
    experiment_folder,
)
from svc_common.subjects import check_id

SHARED_STORAGE_FOLDER: Final = "shared-storage"
"""In the home of the installation: files of mounts that the manager makes."""
_RECORDS_FOLDER: Final = "marks"
_MARK_LIMIT_BYTES: Final = 256
ANSWER_LIMIT: Final = timedelta(seconds=70)
"""Longest wait for a storage to be mounted, marked or cleared; a command that mounts has 60 s."""
COPY_LIMIT: Final = timedelta(minutes=10)
"""Longest copy of a trial's output."""
_FIELD: Final = f"{OPTION}.localMountPoint"
_NOT_OUTPUTS: Final = frozenset({"code", "checkpoints", ".nni"})
"""What an agent keeps in the folder of a trial beside its output."""
_FILES_LIMIT: Final = 100_000
_LIMIT_BYTES: Final = 5 * 1024**3
_PIECE_BYTES: Final = 1024 * 1024
_THREADS: Final = 4
"""Accesses at the same time; others wait."""
_pool: Final = ThreadPoolExecutor(_THREADS, thread_name_prefix="shared-storage")
_T = TypeVar("_T")


class SharedStorages:
    """Access to mounted shared storages in threads, with time limits: marks, outputs, removal.

    A thread that reads a network file system waits for its server, and nothing ends it: it is one
    of a few that nothing else uses, so that all other work of the manager goes on.

    Args:
        folder: private folder of this manager, for files of mounts that it makes, and for the marks
            that it has written: a copy of an experiment, loaded elsewhere, has the same mark.
        variables: environment of the commands that mount, without secrets.
        threads: for accesses to storages.
        answer_limit: longest wait for an access other than a copy.
        mount_table: file that says what this machine mounts.
    """

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        threads: Executor = _pool,
        answer_limit: timedelta = ANSWER_LIMIT,
        mount_table: Path = MOUNT_TABLE,
    ) -> None:
        self._folder = folder
        self._variables = variables
        self._threads = threads
        self._answer_limit = answer_limit
        self._mount_table = mount_table

    async def begin(
        self, experiment_id: str, storage: SharedStorage, config: config_pb2.ExperimentConfig
    ) -> None:
        """Mount a storage if NNI shall; write an experiment's random mark into it and `config`.

        Without a mount on this machine there is no mark.

        Args:
            experiment_id: the new experiment.
            storage: its storage.
            config: of the experiment; changed in place.

        Raises:
            FailedPreconditionError: the storage is not mounted, or cannot be mounted or written, or
                its server does not answer.
        """
        if storage.local_mount is LocalMount.NONE:
            return
        mark = secrets.token_hex(16)
        await self._run(
            storage, self._answer_limit, lambda: self._begin(experiment_id, storage, mark)
        )
        for service in config.training_services:
            for entry in service.options.map_value.entries:
                if entry.key == OPTION:
                    entry.value.map_value.entries.add(
                        key=MARK_OPTION, value=value_pb2.Value(string_value=mark)
                    )

    def _begin(self, experiment_id: str, storage: SharedStorage, mark: str) -> None:
        place = Path(storage.local_mount_point)
        if storage.local_mount is LocalMount.USER:
            self._raise_if_unmounted(place)
        elif not place.is_mount():
            self._mount(experiment_id, storage).mount()
        self._record(experiment_id, mark)
        try:
            with (
                SafeFolder.open(place) as top,
                top.make_folder(experiment_folder(experiment_id)) as folder,
            ):
                folder.replace_file(MARK_FILE, mark.encode())
        except OSError as error:
            raise FailedPreconditionError(
                f"{_FIELD}: {place} cannot be written: {error.strerror}; mount the storage there "
                "(usermount), let NNI do it (nnimount), or say nomount"
            ) from error

    def _raise_if_unmounted(self, place: Path) -> None:
        """Raise if this machine has a storage for a folder that is not mounted.

        The folder is a plain one then: a mark in it would have agents on this machine write there.
        """
        point = unmounted_point(place, self._mount_table)
        if point is not None:
            raise FailedPreconditionError(
                f"{_FIELD}: {place} must be on the storage that {self._mount_table} has for "
                f"{point}, which is not mounted; run `mount {point}`, then try again"
            )

    async def fetch(
        self, experiment_id: str, trial_id: str, storage: SharedStorage, target: SafeFolder
    ) -> bool:
        """Copy a trial's files from the storage; return False if it or they are missing.

        Args:
            experiment_id: experiment of the trial.
            trial_id: the trial.
            storage: where its agent has written.
            target: empty folder.

        Raises:
            FailedPreconditionError: the storage cannot be mounted, or its server does not answer.
            ResourceExhaustedError: there are too many files or bytes.
            OSError: a file cannot be read or written.
        """
        if storage.local_mount is LocalMount.NONE:
            return False
        return await self._run(
            storage, COPY_LIMIT, lambda: self._fetch(experiment_id, trial_id, storage, target)
        )

    def _fetch(
        self, experiment_id: str, trial_id: str, storage: SharedStorage, target: SafeFolder
    ) -> bool:
        if storage.local_mount is LocalMount.NNI:
            self._mount(experiment_id, storage).ensure()
        name = f"{experiment_folder(experiment_id)}/trials/{trial_id}"
        try:
            with (
                SafeFolder.open(Path(storage.local_mount_point)) as top,
                top.folder(name) as source,
            ):
                copy = _Copy()
                copy.run(source, target, _NOT_OUTPUTS | {OUTPUT_FOLDER})
                with suppress(FileNotFoundError), source.folder(OUTPUT_FOLDER) as outputs:
                    copy.run(outputs, target, frozenset())
        except FileNotFoundError:
            return False
        return True

    async def remove(self, experiment_id: str, storage: SharedStorage) -> None:
        """Delete an experiment's folder in the storage, only if this manager has written its mark.

        Only a folder with the mark of this experiment is deleted, and only if this manager has
        written the mark: that of a copy belongs to the original.

        Raises:
            FailedPreconditionError: the storage refuses, or its server does not answer.
        """
        if storage.mark:
            await self._run(
                storage, self._answer_limit, lambda: self._remove(experiment_id, storage)
            )

    def _remove(self, experiment_id: str, storage: SharedStorage) -> None:
        name = experiment_folder(experiment_id)
        if self._recorded(experiment_id) != storage.mark.encode():
            get_logger().info("shared storage of another manager kept", experiment=experiment_id)
            return
        try:
            with SafeFolder.open(Path(storage.local_mount_point)) as top:
                with top.read_file(f"{name}/{MARK_FILE}") as file:
                    mark = file.read(len(storage.mark) + 1)
                if mark == storage.mark.encode():
                    top.remove(name)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise FailedPreconditionError(
                f"{name} cannot be deleted from {storage.local_mount_point}: {error.strerror}"
            ) from error
        with self._records() as records:
            records.remove(experiment_id)

    def _record(self, experiment_id: str, mark: str) -> None:
        """Store an experiment's mark in a local file, as proof that this manager wrote it."""
        with self._records() as records:
            name = check_id("experiment_id", experiment_id)
            records.replace_file(name, mark.encode(), mode=0o600)

    def _recorded(self, experiment_id: str) -> bytes:
        """Return the mark of an experiment that this manager has written; empty: none."""
        try:
            with (
                self._records() as records,
                records.read_file(check_id("experiment_id", experiment_id)) as file,
            ):
                return file.read(_MARK_LIMIT_BYTES)
        except FileNotFoundError:
            return b""

    @contextmanager
    def _records(self) -> Iterator[SafeFolder]:
        """Yield the opened folder of marks that this manager has written; translate its errors.

        Raises:
            FailedPreconditionError: it, or a file of it, cannot be read or written.
        """
        try:
            private_folder(self._folder)
            with SafeFolder.open(self._folder / _RECORDS_FOLDER, create=True) as records:
                yield records
        except FileNotFoundError:
            raise  # of a mark that was not written here
        except OSError as error:
            raise FailedPreconditionError(
                f"the folder {self._folder / _RECORDS_FOLDER} of the manager cannot be used: "
                f"{error.strerror}; mend it or free space there, then try again"
            ) from error

    async def _run(self, storage: SharedStorage, limit: timedelta, access: Callable[[], _T]) -> _T:
        """Run an access to a storage in a thread; return its result; raise after a time limit.

        Raises:
            FailedPreconditionError: it takes longer than the limit.
        """
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await asyncio.get_running_loop().run_in_executor(self._threads, access)
        except TimeoutError as error:
            raise FailedPreconditionError(
                f"{_FIELD}: {storage.local_mount_point} did not answer within "
                f"{limit.total_seconds():g} s; look whether the server of the storage can be "
                "reached, then try again"
            ) from error

    def _mount(self, experiment_id: str, storage: SharedStorage) -> SharedMount:
        private_folder(self._folder)
        return SharedMount(
            replace(storage, remote_mount_point=storage.local_mount_point),
            experiment_id,
            Path(storage.local_mount_point),
            self._folder,
            self._variables,
        )


class _Copy:
    """Copier of files and folders within a trial's limits; skips links and files that exist."""

    def __init__(self) -> None:
        self._files = 0
        self._bytes = 0

    def run(self, source: SafeFolder, target: SafeFolder, without: frozenset[str]) -> None:
        for name, status in source.walk(without):
            if stat.S_ISDIR(status.st_mode):
                target.make_folder(name).close()
            elif stat.S_ISREG(status.st_mode):
                self._files += 1
                self._bytes += status.st_size
                if self._files > _FILES_LIMIT or self._bytes > _LIMIT_BYTES:
                    raise ResourceExhaustedError(
                        f"a trial has more than {_FILES_LIMIT:,} files or "
                        f"{_LIMIT_BYTES:,} bytes; look into its folder in the shared storage"
                    )
                with (
                    suppress(FileExistsError, FileNotFoundError),
                    source.read_file(name) as read,
                    target.create_file(name) as written,
                ):
                    while piece := read.read(_PIECE_BYTES):
                        written.write(piece)
