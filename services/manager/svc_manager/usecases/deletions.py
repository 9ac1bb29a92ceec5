"""Use case that deletes an experiment, idempotent per request."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.access.current_call import audit_folder
from svc_common.errors import FailedPreconditionError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus, EventLog
from svc_manager.actors.registry import ActorRegistry
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.requests import check_repetition, fingerprint, request_record
from svc_manager.event_log.summaries import Summaries
from svc_manager.event_log.tombstones import Tombstone, Tombstones
from svc_manager.ports import Folders
from svc_manager.usecases.metric_cache import MetricCache

_METHOD = "DeleteExperiment"


class ExperimentRemover:
    """Remover of all data of an experiment without an actor: folder, summary, INBOX, log.

    Args:
        bus: holds its logs.
        folders: removes its folder.
        summaries: holds its summary.
        on_deleted: called afterwards: its blobs are garbage now.
        annotated: folder of converted copies of annotated code; None: not on this machine.
    """

    def __init__(
        self,
        bus: Bus,
        folders: Folders,
        summaries: Summaries,
        on_deleted: Callable[[], None] = lambda: None,
        annotated: Path | None = None,
    ) -> None:
        self._annotated = annotated
        self._bus = bus
        self._folders = folders
        self._summaries = summaries
        self._on_deleted = on_deleted

    async def delete(self, experiment_id: str, directory: str, code_directory: str = "") -> None:
        """Delete an experiment's folder, summary, INBOX and log; safe to repeat after a failure.

        A folder is removed only if it holds the experiment's log, or has its name and no log: its
        path came from outside.
        """
        if directory and not await self._folders.remove_of(Path(directory), experiment_id):
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
    """

    def __init__(
        self,
        registry: ActorRegistry,
        events: EventLog,
        remover: ExperimentRemover,
        tombstones: Tombstones,
        metrics: MetricCache,
    ) -> None:
        self._registry = registry
        self._events = events
        self._remover = remover
        self._tombstones = tombstones
        self._metrics = metrics
        # A repetition waits until the first request is done.
        self._lock = asyncio.Lock()

    async def delete(self, experiment_id: str, request_id: str = "") -> None:
        """Delete a STOPPED experiment's log, folder and blobs; a repeated request has no effect.

        The request id is the key of repetitions: its tombstone is written before anything is
        removed. A repetition completes an interrupted request; after a completed one it has no
        effect, even if another experiment has got the same id since.

        Raises:
            FailedPreconditionError: it is not STOPPED.
            InvalidArgumentError: the request id belongs to another deletion.
            NotFoundError: there is no such experiment, and this request has deleted none.
        """
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
        await self._remover.delete(experiment_id, view.directory, code_directory)
