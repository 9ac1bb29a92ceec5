"""Use case that deletes an experiment, idempotent per request."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.access.current_call import audit_folder
from svc_common.errors import FailedPreconditionError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus, EventLog
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.actors.registry import ActorRegistry
from svc_manager.blobs.shared_storages import SharedStorages
from svc_manager.converters.shared_storage import storage_of
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.requests import check_repetition, fingerprint, request_record
from svc_manager.event_log.summaries import Summaries
from svc_manager.event_log.tombstones import Tombstone, Tombstones
from svc_manager.ports import Folders
from svc_manager.usecases.folder_disposal import Disposal, FolderDisposal
from svc_manager.usecases.metric_cache import MetricCache
from svc_manager.usecases.pool_removal import PoolRemover

_METHOD = "DeleteExperiment"


class ExperimentRemover:
    """Remover of all data of an experiment without an actor: pool, folder, INBOX, log.

    Args:
        bus: holds its logs.
        folders: removes the copy of its code.
        pools: removes its pool.
        disposal: takes its folder.
        summaries: holds its summary.
        on_deleted: called afterwards: its blobs are garbage now.
        annotated: folder of converted copies of annotated code; None: not on this machine.
    """

    def __init__(
        self,
        bus: Bus,
        folders: Folders,
        pools: PoolRemover,
        disposal: FolderDisposal,
        summaries: Summaries,
        on_deleted: Callable[[], None] = lambda: None,
        annotated: Path | None = None,
    ) -> None:
        self._annotated = annotated
        self._bus = bus
        self._folders = folders
        self._pools = pools
        self._disposal = disposal
        self._summaries = summaries
        self._on_deleted = on_deleted

    async def delete(
        self, experiment_id: str, directory: str, last_sequence: int, code_directory: str = ""
    ) -> None:
        """Delete an experiment's data; keep a folder of another experiment; may be repeated.

        A folder is removed only if it holds the experiment's log, or has its name and no log: its
        path came from outside. Its disk is given back in the background.
        """
        await self._pools.remove(experiment_id)
        if directory and not await self._disposal.take(
            experiment_id, Path(directory), last_sequence
        ):
            get_logger().warning(
                "folder not removed: it holds no log of this experiment",
                folder=directory,
                experiment=experiment_id,
            )
        code = Path(code_directory)
        if self._annotated is not None and code.parent == self._annotated:
            await self._folders.remove(code)  # the copy belongs to this experiment alone
        await self._summaries.delete(experiment_id)
        await self._bus.inbox.delete(experiment_id)
        await self._bus.log_lines.delete(experiment_id)
        await self._bus.events.delete(experiment_id)
        self._on_deleted()


class Deletions:
    """Use case that deletes stopped experiments, each request once, by a stored record.

    Args:
        registry: registry of the actors.
        events: the logs.
        remover: removes the data.
        tombstones: records the requests.
        metrics: metrics.
        disposal: gives back the disk.
        shared_storages: hold outputs of trials.
    """

    def __init__(
        self,
        registry: ActorRegistry,
        events: EventLog,
        remover: ExperimentRemover,
        tombstones: Tombstones,
        metrics: MetricCache,
        disposal: FolderDisposal,
        shared_storages: SharedStorages,
    ) -> None:
        self._shared_storages = shared_storages
        self._registry = registry
        self._events = events
        self._remover = remover
        self._tombstones = tombstones
        self._metrics = metrics
        self._disposal = disposal
        # A repetition waits until the first request is done.
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Complete the deletions that earlier managers began, then give back disk for ever."""
        await self._disposal.resume(self._is_unfinished, self._complete)
        await self._disposal.run()

    async def delete(self, experiment_id: str, request_id: str = "") -> int:
        """Delete a STOPPED experiment; return about how many trial folders are deleted later.

        The request id is the key of repetitions: its tombstone is written before anything is
        removed. A repetition completes an interrupted request; after a completed one it has no
        effect, even if another experiment has got the same id since.

        The deletion goes on if the caller is cancelled, as by the deadline of its client.

        Returns:
            How many trial folders are still on the disk, about; they are deleted in the background.

        Raises:
            FailedPreconditionError: it is not STOPPED.
            InvalidArgumentError: the request id belongs to another deletion.
            NotFoundError: there is no such experiment, and this request has deleted none.
        """
        task = asyncio.create_task(self._delete_once(experiment_id, request_id), name="delete")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)
        return self._disposal.remaining(experiment_id)

    async def _delete_once(self, experiment_id: str, request_id: str) -> None:
        async with self._lock:
            if request_id and await self._is_done(experiment_id, request_id):
                return
            await self._registry.view(experiment_id)
            await self._registry.reserve(experiment_id)
            try:
                await self._delete(experiment_id, request_id)
            finally:
                await self._registry.release(experiment_id)

    async def _is_done(self, experiment_id: str, request_id: str) -> bool:
        tombstone = await self._tombstones.get(request_id)
        if tombstone is None:
            return False
        known = request_record(_METHOD, fingerprint(tombstone.experiment_id))
        check_repetition(known, request_id, _METHOD, fingerprint(experiment_id))
        last = await self._events.last(experiment_id)
        return last is None or last.sequence != tombstone.last_sequence

    async def _delete(self, experiment_id: str, request_id: str) -> None:
        view = await self._registry.view(experiment_id)
        if view.state != experiment_pb2.EXPERIMENT_STATE_STOPPED:
            state = ExperimentState(view.state).name
            raise FailedPreconditionError(
                f"experiment {experiment_id!r} is {state}: only a stopped one can be deleted; "
                "stop it first",
                {"state": state},
            )
        storage = storage_of(view.config)
        if storage is not None:
            # First: while the storage is away, the experiment is listed, and may be deleted later.
            await self._shared_storages.remove(experiment_id, storage)
        last = await self._events.last(experiment_id)
        if request_id and last is not None:
            await self._tombstones.put(request_id, Tombstone(experiment_id, last.sequence))
        await self._registry.forget(experiment_id)
        self._metrics.forget(experiment_id)
        audit_folder(view.directory)
        code_directory = view.config.trial_code_directory
        if any(
            other.id != experiment_id and other.config.trial_code_directory == code_directory
            for other in self._registry.views()
        ):
            code_directory = ""  # a copy that another experiment uses, too
        sequence = last.sequence if last is not None else 0
        await self._remover.delete(experiment_id, view.directory, sequence, code_directory)

    async def _is_unfinished(self, disposal: Disposal) -> bool:
        last = await self._events.last(disposal.experiment_id)
        return last is not None and last.sequence == disposal.last_sequence

    async def _complete(self, disposal: Disposal) -> None:
        """Complete an interrupted deletion under a lease; do nothing if another manager has it."""
        experiment_id = disposal.experiment_id
        try:
            await self._registry.reserve(experiment_id)
        except OwnedElsewhereError:
            return
        try:
            await self._registry.forget(experiment_id)
            await self._remover.delete(experiment_id, "", disposal.last_sequence)
        finally:
            await self._registry.release(experiment_id)
