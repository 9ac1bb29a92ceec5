"""Use case of deleting an experiment: once for each request, however often it is asked."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import FailedPreconditionError
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
    """Deletes logs, folder and summary of an experiment that nobody runs.

    Args:
        bus: where its logs lie.
        folders: where its folder lies.
        summaries: what lists show.
        on_deleted: called afterwards: what only it referred to is garbage now.
        annotated: where the converted copies of annotated code lie; None: not on this machine.
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
        """Delete it; may be repeated after a failure half-way.

        Only a folder that bears the experiment's name or its database is removed: the path came
        from outside once.
        """
        folder = Path(directory)
        if folder.name == experiment_id or (folder / "db" / "events.log").is_file():
            await self._folders.remove(folder)
        code = Path(code_directory)
        if self._annotated is not None and code.parent == self._annotated:
            await self._folders.remove(code)  # nobody else runs this copy
        await self._summaries.delete(experiment_id)
        await self._bus.inbox.delete(experiment_id)
        await self._bus.log_lines.delete(experiment_id)
        await self._bus.events.delete(experiment_id)
        self._on_deleted()


class Deletions:
    """Deletes stopped experiments.

    Args:
        roster: the experiments.
        events: their logs.
        deletion: removes what an experiment leaves.
        tombstones: remembers the requests.
        books: metrics.
    """

    def __init__(
        self,
        registry: ActorRegistry,
        events: EventLog,
        deletion: ExperimentRemover,
        tombstones: Tombstones,
        books: MetricCache,
    ) -> None:
        self._registry = registry
        self._events = events
        self._deletion = deletion
        self._tombstones = tombstones
        self._books = books
        # A repetition that comes while the first is at work has its turn when that is done.
        self._turn = asyncio.Lock()

    async def delete(self, experiment_id: str, request_id: str = "") -> None:
        """Remove log, folder and bytes of a stopped experiment.

        The key of its repetition is the request id: what it names is noted before anything is
        removed. A request that was cut in two is carried on by its repetition; one that was done is
        done, also if there is another experiment of the same id by now.

        Raises:
            FailedPreconditionError: it is not STOPPED.
            InvalidArgumentError: the request id stands for another deletion.
            NotFoundError: there is no such experiment, and this request has deleted none.
        """
        async with self._turn:
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
        self._books.forget(experiment_id)
        code_directory = view.config.trial_code_directory
        await self._deletion.delete(experiment_id, view.directory, code_directory)
