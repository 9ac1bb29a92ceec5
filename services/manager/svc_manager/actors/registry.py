"""Registry of live experiment actors, with summaries of the stopped experiments."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import (
    FailedPreconditionError,
    LostOwnershipError,
    NotFoundError,
    ServiceError,
    UnavailableError,
)
from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner
from svc_manager.actors.experiment_actor import ActorDependencies, ExperimentActor
from svc_manager.actors.inbox_reader import continue_inbox
from svc_manager.actors.leasing import OwnedElsewhereError, Ownership
from svc_manager.actors.log_restoration import LogRestorer
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.state import Experiment
from svc_manager.event_log.reader import FoldedExperiment, complete_journal, cursor_of, load
from svc_manager.ports import Journal, Journals

LOOK_EVERY_S: Final = 15.0
"""Time between two looks whether the bus still has all its streams."""
CLOSED_KEPT: Final = 32
"""Stopped experiments whose folded logs stay in memory after a query."""
_STOP_TIMEOUT_S: Final = 3.0
"""Time for rounds under way when the manager ends; the next manager repeats the others."""
_RELOAD_DELAY_S: Final = 1.0
"""Pause before an experiment whose actor failed is loaded again."""
_TAKEN_AT_ONCE: Final = 4
"""Ownerless experiments that are loaded at the same time."""


class _LogRestoredError(Exception):
    """Error: a log was replaced by the one in the experiment's folder: it must be read again."""


class ActorRegistry:
    """Registry of this manager's experiment actors: loads, finds, evicts and stops them.

    Experiments that are not stopped have an actor all the time, at the one manager that owns them;
    a stopped one gets an actor, and an owner, on a query that its summary cannot answer.

    Args:
        dependencies: shared by all actors.
        journals: opens the log files of experiment folders.
        ownership: leases of this manager.
    """

    def __init__(
        self, dependencies: ActorDependencies, journals: Journals, ownership: Ownership
    ) -> None:
        self._dependencies = dependencies
        self._journals = journals
        self._ownership = ownership
        self._restorer = LogRestorer(
            dependencies.bus, dependencies.summaries, journals, dependencies.ids, ownership
        )
        self._actors: dict[str, ExperimentActor] = {}
        self._summaries: dict[str, experiment_pb2.Experiment] = {}
        self._stopped_at: dict[str, int] = {}
        self._loading: dict[str, asyncio.Lock] = {}
        self._tasks = TaskOwner(self._actor_failed)
        self._taking = asyncio.Semaphore(_TAKEN_AT_ONCE)
        self._closing = False

    async def open(self) -> None:
        """Join the leases, restore lost logs and INBOX, load open experiments without an owner."""
        await self._ownership.join()
        await self._restorer.restore_missing()
        await continue_inbox(self._dependencies.bus.inbox, await self._largest_cursor())
        for experiment_id in await self._open_experiments():
            await self._take_over(experiment_id)

    async def _largest_cursor(self) -> int:
        """Return the largest INBOX sequence that the last batch of any log records as consumed."""
        events = self._dependencies.bus.events
        cursor = 0
        for experiment_id in await events.experiments():
            last = await events.last(experiment_id)
            if last is not None:
                cursor = max(cursor, cursor_of(last.payload))
        return cursor

    async def keep(self) -> None:
        """Renew leases until cancelled; stop actors of lost experiments, load ownerless ones."""
        await self._ownership.keep(
            self._step_back,
            lambda id_: self._start(self._take_ownerless(id_), f"take {id_}"),
            lambda: self._start(self._find_ownerless(), "find ownerless experiments"),
        )

    async def watch_inbox(self) -> None:
        """At each return of the bus, renumber the INBOX if it lost data; raise if streams are gone.

        Raises:
            UnavailableError: the bus has lost whole streams. The next start of this manager makes
                them, restores the logs from the folders, and publishes tasks and orders again.
        """
        bus = self._dependencies.bus
        while True:
            await bus.wait_connected(connected=False)
            await bus.wait_connected()
            _check_streams(await bus.missing_streams())
            cursor = max((actor.read_sequence for actor in self.actors()), default=0)
            if await continue_inbox(bus.inbox, cursor):
                for actor in self.actors():
                    self._dependencies.agents.expect(actor.id, actor.experiment)

    async def watch_streams(self) -> None:
        """Look every `LOOK_EVERY_S` whether a stream was deleted while the bus served; raise if so.

        Raises:
            UnavailableError: as in `watch_inbox`.
        """
        while True:
            await self._dependencies.clock.sleep(LOOK_EVERY_S)
            try:
                missing = await self._dependencies.bus.missing_streams()
            except ServiceError as error:  # the bus is away, or answers late
                get_logger().info("streams not looked at", error=error.message)
                continue
            _check_streams(missing)

    async def _open_experiments(self) -> list[str]:
        """Return the ids on the bus that are not stopped, nor live in this or another manager.

        Store the summaries of stopped ones.
        """
        events = self._dependencies.bus.events
        ends = dict[str, int]()
        for experiment_id in await events.experiments():
            if experiment_id not in self._actors and not self._ownership.owned_elsewhere(
                experiment_id
            ):
                last = await events.last(experiment_id)
                ends[experiment_id] = last.sequence if last else 0
        stopped = await self._stopped_among(ends)
        return [experiment_id for experiment_id in ends if experiment_id not in stopped]

    async def _stopped_among(self, ends: Mapping[str, int]) -> set[str]:
        """Cache current summaries of stopped experiments by last log sequence; return their ids."""
        summaries = await self._dependencies.summaries.get(ends)
        stopped = set()
        for experiment_id, summary in summaries.items():
            if summary.state == experiment_pb2.EXPERIMENT_STATE_STOPPED:
                self._summaries[experiment_id] = summary
                self._stopped_at[experiment_id] = ends[experiment_id]
                stopped.add(experiment_id)
        return stopped

    async def _take_over(self, experiment_id: str) -> None:
        """Load an experiment's actor; schedule a retry if it is owned, log any other failure."""
        try:
            await self.find(experiment_id)
        except OwnedElsewhereError:
            self._ownership.add_ownerless(experiment_id)  # the lease may belong to a dead manager
        except (FailedPreconditionError, NotFoundError, UnavailableError, OSError) as error:
            get_logger().error(
                "experiment not taken over", experiment=experiment_id, error=str(error)
            )

    async def _take_ownerless(self, experiment_id: str) -> None:
        """Load the actor of an ownerless experiment, unless its log is gone or it is stopped."""
        async with self._taking:
            last = await self._dependencies.bus.events.last(experiment_id)
            if last is not None and not await self._stopped_among({experiment_id: last.sequence}):
                await self._take_over(experiment_id)

    async def _find_ownerless(self) -> None:
        """Schedule takeovers of the open experiments that no manager owned at the last refresh."""
        for experiment_id in await self._open_experiments():
            self._ownership.add_ownerless(experiment_id)

    def _step_back(self, experiment_id: str) -> None:
        """Stop the actor of an experiment that another manager has taken; release it afterwards."""
        actor = self._actors.pop(experiment_id, None)
        if actor is not None:
            get_logger().warning("experiment released", experiment=experiment_id)
            actor.request_stop()
            self._start(self._await_release(actor), f"release {experiment_id}")

    async def _await_release(self, actor: ExperimentActor) -> None:
        await actor.ended()
        await self._release_experiment(actor.id)

    async def _release_experiment(self, experiment_id: str) -> None:
        """Close the port and release the lease of an experiment, unless it has an actor again."""
        async with self._loading.setdefault(experiment_id, asyncio.Lock()):
            if experiment_id not in self._actors:
                await self._dependencies.listeners.close_listener(experiment_id)
                await self._ownership.release(experiment_id)

    async def find(self, experiment_id: str) -> ExperimentActor:
        """Return the actor of an experiment; without one take its lease and fold its log, or raise.

        Raises:
            NotFoundError: there is no such experiment.
            OwnedElsewhereError: another manager owns it.
        """
        actor = self._actors.get(experiment_id)
        if actor is not None:
            return actor
        async with self._loading.setdefault(experiment_id, asyncio.Lock()):
            actor = self._actors.get(experiment_id)
            if actor is not None:
                return actor
            return await self._load(experiment_id)

    async def experiment(self, experiment_id: str) -> Experiment:
        """Return an experiment's state; load its actor if there is none; raise if it cannot.

        Raises:
            NotFoundError: there is no such experiment.
            OwnedElsewhereError: another manager owns it.
        """
        return (await self.find(experiment_id)).experiment

    def actors(self) -> Iterator[ExperimentActor]:
        """Yield this manager's live actors, from a copy of the list."""
        yield from list(self._actors.values())

    def stopped_at(self, experiment_id: str) -> int | None:
        """Return the last sequence in the log of a stopped experiment without an actor.

        None: not known to be stopped.
        """
        return None if experiment_id in self._actors else self._stopped_at.get(experiment_id)

    async def start(self, experiment_id: str, directory: str, *, debug: bool) -> ExperimentActor:
        """Take a new experiment's lease; start and return its actor, with an empty log.

        Raises:
            OwnedElsewhereError: another manager is creating it.
        """
        self._check_not_closing()
        epoch = await self._ownership.take(experiment_id, 0)
        journal = self._journals.open(directory, debug=debug)
        return self._run(
            experiment_id,
            ExperimentActor(
                experiment_id, FoldedExperiment(Experiment()), journal, self._dependencies, epoch
            ),
        )

    def owned_views(self) -> list[experiment_pb2.Experiment]:
        """Return the views of the experiments with an actor in this manager, in no order."""
        return [actor.view() for actor in self._actors.values() if actor.experiment.created]

    def views(self) -> list[experiment_pb2.Experiment]:
        """Return the proto messages of all known experiments: live actors, cached summaries."""
        views = self.owned_views()
        views.extend(view for key, view in self._summaries.items() if key not in self._actors)
        return views

    async def view(self, experiment_id: str) -> experiment_pb2.Experiment:
        """Return an experiment's proto message by its cached summary or its actor, loaded if none.

        Raises:
            NotFoundError: there is no such experiment.
            OwnedElsewhereError: another manager owns it.
        """
        summary = self._summaries.get(experiment_id)
        if summary is not None and experiment_id not in self._actors:
            if await self._is_still_stopped(experiment_id):
                return summary
            self._forget_summary(experiment_id)
        return (await self.find(experiment_id)).view()

    async def _is_still_stopped(self, experiment_id: str) -> bool:
        """Return whether a stopped experiment's log still ends where its summary was made.

        False after another manager has resumed or deleted the experiment.
        """
        if not self._ownership.shared:
            return True
        last = await self._dependencies.bus.events.last(experiment_id)
        return last is not None and last.sequence == self._stopped_at.get(experiment_id)

    def _forget_summary(self, experiment_id: str) -> None:
        self._summaries.pop(experiment_id, None)
        self._stopped_at.pop(experiment_id, None)

    async def reserve(self, experiment_id: str) -> None:
        """Acquire an experiment's lease without an actor, until `release`; raise if it is taken.

        Raises:
            OwnedElsewhereError: another manager owns it.
        """
        if experiment_id not in self._actors:
            last = await self._dependencies.bus.events.last(experiment_id)
            await self._ownership.take(experiment_id, last.epoch if last else 0)

    async def release(self, experiment_id: str) -> None:
        """Release the lease of an experiment, unless it has an actor in this manager."""
        if experiment_id not in self._actors:
            await self._ownership.release(experiment_id)

    def exists(self, experiment_id: str) -> bool:
        """Return whether an experiment has an actor or a cached summary here; no log is read."""
        return experiment_id in self._actors or experiment_id in self._summaries

    async def forget(self, experiment_id: str) -> None:
        """Stop the actor of an experiment that is being deleted; drop its cached summary."""
        actor = self._actors.pop(experiment_id, None)
        self._forget_summary(experiment_id)
        if actor is not None:
            actor.request_stop()
            await actor.ended()

    async def aclose(self) -> None:
        """Stop all actors after their round, within a time limit; release all leases; once."""
        if self._closing:
            return
        self._closing = True
        for actor in self._actors.values():
            actor.request_stop()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await self._tasks.drain()
        except TimeoutError:
            get_logger().warning("experiments cut off", count=len(self._tasks))
        await self._tasks.aclose()
        await self._ownership.leave()

    def _check_not_closing(self) -> None:
        if self._closing:
            raise UnavailableError("this manager is ending; try again")

    async def _load(self, experiment_id: str) -> ExperimentActor:
        self._check_not_closing()
        self._evict()
        last = await self._dependencies.bus.events.last(experiment_id)
        if last is None or last.is_loading:
            raise NotFoundError("experiment", experiment_id)
        epoch = await self._ownership.take(experiment_id, last.epoch)
        try:
            actor = await self._fold(experiment_id, last.sequence, epoch)
        except _LogRestoredError:
            await self._ownership.release(experiment_id)
            return await self._load(experiment_id)  # with an epoch above those of the restored log
        except BaseException:
            await self._ownership.release(experiment_id)
            raise
        self._dependencies.agents.expect(experiment_id, actor.experiment)
        return self._run(experiment_id, actor)

    async def _fold(self, experiment_id: str, end: int, epoch: int) -> ExperimentActor:
        events = self._dependencies.bus.events
        snapshot = await self._dependencies.summaries.get_snapshot(experiment_id)
        if snapshot and end < snapshot.sequence:
            # Of another log: the streams were recreated, or have lost their end. Once the log has
            # grown beyond its position it would be taken for a snapshot of this one.
            await self._dependencies.summaries.delete(experiment_id)
            snapshot = None
        try:
            folded = await load(events, experiment_id, snapshot)
        except FailedPreconditionError as error:
            if await self._restorer.replace_unreadable(experiment_id, error.message):
                raise _LogRestoredError from error
            raise
        experiment = folded.experiment
        if not experiment.created:
            raise NotFoundError("experiment", experiment_id)

        def open_journal() -> Journal:
            return self._journals.open(experiment.directory, debug=experiment.settings.debug)

        await continue_inbox(self._dependencies.bus.inbox, folded.inbox_sequence)
        directory = Path(experiment.directory)
        if await self._restorer.compare(experiment_id, directory, folded.sequence):
            raise _LogRestoredError
        journal = await complete_journal(events, experiment_id, open_journal, folded.sequence)
        return ExperimentActor(experiment_id, folded, journal, self._dependencies, epoch)

    def _evict(self) -> None:
        """Stop the oldest actors of stopped experiments beyond a limit; cache their summaries."""
        closed = [
            actor
            for actor in self._actors.values()
            if actor.experiment.created and actor.experiment.state is ExperimentState.STOPPED
        ]
        for actor in closed[: max(0, len(closed) - CLOSED_KEPT)]:
            self._summaries[actor.id] = actor.view()
            self._stopped_at[actor.id] = actor.sequence
            del self._actors[actor.id]
            actor.request_stop()
            self._start(self._await_release(actor), f"release {actor.id}")

    def _run(self, experiment_id: str, actor: ExperimentActor) -> ExperimentActor:
        self._actors[experiment_id] = actor
        self._forget_summary(experiment_id)
        self._tasks.start(actor.run(), experiment_id)
        return actor

    def _actor_failed(self, experiment_id: str, error: BaseException) -> None:
        actor = self._actors.pop(experiment_id, None)
        if self._closing:
            return
        if actor is None and isinstance(error, LostOwnershipError):
            return  # the actor was stopped already, for the same reason
        if actor is None:
            get_logger().error("experiment not loaded", task=experiment_id, exc_info=error)
            return
        if isinstance(error, LostOwnershipError) and error.found_epoch > actor.epoch:
            get_logger().warning(
                "experiment released", experiment=experiment_id, error=error.message
            )
            self._start(self._release_experiment(experiment_id), f"release {experiment_id}")
            return
        get_logger().error("experiment failed here", experiment=experiment_id, exc_info=error)
        self._start(self._reload(experiment_id), f"reload {experiment_id}")

    def _start(self, work: Coroutine[object, object, None], name: str) -> None:
        """Start a coroutine as a named background task; close it if the manager is ending."""
        if self._closing:
            work.close()
        else:
            self._tasks.start(work, name)

    async def _reload(self, experiment_id: str) -> None:
        await self._dependencies.clock.sleep(_RELOAD_DELAY_S)
        if not self._closing:
            await self._take_over(experiment_id)


def _check_streams(missing: Sequence[str]) -> None:
    """Raise if the bus has lost streams.

    Raises:
        UnavailableError: it has; this manager must start again.
    """
    if missing:
        raise UnavailableError(
            f"the bus has lost its streams {', '.join(missing)}; this manager starts again to make "
            "them"
        )
