"""All experiments of this manager: which are live here, and what is known of the rest."""

import asyncio
from collections.abc import Iterator
from typing import Final

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import FailedPreconditionError, LostOwnershipError, NotFoundError
from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner
from svc_manager.actor import ExperimentActor, Outside
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.state import Experiment
from svc_manager.loading import Folded, complete_journal, load
from svc_manager.ports import Journals

CREATE_METHOD = "CreateExperiment"
"""Recorded with the request id of a creation, so that it can be found again."""
CLOSED_KEPT: Final = 32
"""Stopped experiments whose logs stay folded after somebody looked into them."""
_STOP_TIMEOUT_S: Final = 3.0
"""For rounds that are under way when the manager ends; the next one does them again."""
_RELOAD_DELAY_S: Final = 1.0
"""Before an experiment whose actor failed is loaded again."""


class Roster:
    """Starts, finds and ends the actors.

    Experiments that are not stopped have an actor all the time; a stopped one gets one when
    somebody asks for more than lists show.

    Args:
        outside: what all actors share.
        journals: opens what experiment folders keep.
    """

    def __init__(self, outside: Outside, journals: Journals) -> None:
        self._outside = outside
        self._journals = journals
        self._actors: dict[str, ExperimentActor] = {}
        self._summaries: dict[str, experiment_pb2.Experiment] = {}
        self._stopped_at: dict[str, int] = {}
        self._loading: dict[str, asyncio.Lock] = {}
        self._creations: dict[str, str] = {}
        self._tasks = TaskOwner(self._actor_failed)
        self._closing = False

    async def open(self) -> None:
        """Take over all experiments that are not stopped, and learn of those that are."""
        events = self._outside.bus.events
        ends = dict[str, int]()
        for experiment_id in await events.experiments():
            last = await events.last(experiment_id)
            ends[experiment_id] = last.sequence if last else 0
        summaries = await self._outside.summaries.get(ends)
        for experiment_id, end in ends.items():
            summary = summaries.get(experiment_id)
            if summary and summary.state == experiment_pb2.EXPERIMENT_STATE_STOPPED:
                self._summaries[experiment_id] = summary
                self._stopped_at[experiment_id] = end
            else:
                await self._take_over(experiment_id)

    async def _take_over(self, experiment_id: str) -> None:
        """Load an experiment; one that cannot be loaded must not keep the others from going on."""
        try:
            await self.find(experiment_id)
        except (FailedPreconditionError, NotFoundError, OSError) as error:
            get_logger().error(
                "experiment not taken over", experiment=experiment_id, error=str(error)
            )

    async def find(self, experiment_id: str) -> ExperimentActor:
        """Give the actor of an experiment, loading its log if need be.

        Raises:
            NotFoundError: there is no such experiment.
        """
        actor = self._actors.get(experiment_id)
        if actor is not None:
            return actor
        async with self._loading.setdefault(experiment_id, asyncio.Lock()):
            actor = self._actors.get(experiment_id)
            if actor is not None:
                return actor
            return await self._load(experiment_id)

    def found(self) -> Iterator[ExperimentActor]:
        """Give the actors that there are now."""
        yield from list(self._actors.values())

    def stopped_at(self, experiment_id: str) -> int | None:
        """Give the end of the log of an experiment that is stopped and has no actor; None: else."""
        return None if experiment_id in self._actors else self._stopped_at.get(experiment_id)

    def start(self, experiment_id: str, directory: str, *, debug: bool) -> ExperimentActor:
        """Start the actor of an experiment that is about to be created in an existing folder."""
        journal = self._journals.open(directory, debug=debug)
        return self._run(
            experiment_id,
            ExperimentActor(experiment_id, Folded(Experiment()), journal, self._outside),
        )

    def views(self) -> list[experiment_pb2.Experiment]:
        """Give all experiments as clients see them, in no order."""
        views = [actor.view() for actor in self._actors.values() if actor.experiment.created]
        views.extend(view for key, view in self._summaries.items() if key not in self._actors)
        return views

    async def view(self, experiment_id: str) -> experiment_pb2.Experiment:
        """Give one experiment as clients see it, without loading the log of one that is over.

        Raises:
            NotFoundError: there is no such experiment.
        """
        summary = self._summaries.get(experiment_id)
        if summary is not None and experiment_id not in self._actors:
            return summary
        return (await self.find(experiment_id)).view()

    def exists(self, experiment_id: str) -> bool:
        """Tell whether an experiment is known."""
        return experiment_id in self._actors or experiment_id in self._summaries

    def note_creation(self, request_id: str, experiment_id: str) -> None:
        """Remember which experiment a request has created."""
        if request_id:
            self._creations[request_id] = experiment_id

    def forget_creation(self, request_id: str) -> None:
        """Take back `note_creation`: the request was refused after all."""
        self._creations.pop(request_id, None)

    def created_by(self, request_id: str) -> str | None:
        """Give the experiment that a request has created; None if it has created none."""
        return self._creations.get(request_id)

    async def forget(self, experiment_id: str) -> None:
        """End the actor of an experiment that is being deleted."""
        actor = self._actors.pop(experiment_id, None)
        self._summaries.pop(experiment_id, None)
        self._stopped_at.pop(experiment_id, None)
        if actor is not None:
            actor.stop_soon()
            await actor.ended()

    async def aclose(self) -> None:
        """End all actors after the round that is under way."""
        self._closing = True
        for actor in self._actors.values():
            actor.stop_soon()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await self._tasks.drain()
        except TimeoutError:
            get_logger().warning("experiments cut off", count=len(self._tasks))
        await self._tasks.aclose()

    async def _load(self, experiment_id: str) -> ExperimentActor:
        self._evict()
        events = self._outside.bus.events
        snapshot = await self._outside.summaries.get_snapshot(experiment_id)
        last = await events.last(experiment_id) if snapshot else None
        if snapshot and (last is None or last.sequence < snapshot.sequence):
            snapshot = None  # of another log: the streams were made anew
        folded = await load(events, experiment_id, snapshot)
        experiment = folded.experiment
        if not experiment.created:
            raise NotFoundError("experiment", experiment_id)
        journal = await complete_journal(
            events,
            experiment_id,
            lambda: self._journals.open(experiment.directory, debug=experiment.settings.debug),
            folded.sequence,
        )
        return self._run(
            experiment_id, ExperimentActor(experiment_id, folded, journal, self._outside)
        )

    def _evict(self) -> None:
        """Let go of stopped experiments that were looked into longest ago."""
        closed = [
            actor
            for actor in self._actors.values()
            if actor.experiment.created and actor.experiment.state is ExperimentState.STOPPED
        ]
        for actor in closed[: max(0, len(closed) - CLOSED_KEPT)]:
            self._summaries[actor.id] = actor.view()
            self._stopped_at[actor.id] = actor.sequence
            del self._actors[actor.id]
            actor.stop_soon()

    def _run(self, experiment_id: str, actor: ExperimentActor) -> ExperimentActor:
        self._actors[experiment_id] = actor
        self._summaries.pop(experiment_id, None)
        self._stopped_at.pop(experiment_id, None)
        for request_id, method in actor.experiment.requests.items():
            if method == CREATE_METHOD:
                self._creations[request_id] = experiment_id
        self._tasks.start(actor.run(), experiment_id)
        return actor

    def _actor_failed(self, experiment_id: str, error: BaseException) -> None:
        actor = self._actors.pop(experiment_id, None)
        if self._closing:
            return
        if actor is None:
            get_logger().error("experiment not loaded", task=experiment_id, exc_info=error)
            return
        if isinstance(error, LostOwnershipError) and error.found_epoch > actor.epoch:
            get_logger().warning("stepped back", experiment=experiment_id, error=error.message)
            return
        get_logger().error("experiment failed here", experiment=experiment_id, exc_info=error)
        self._tasks.start(self._reload(experiment_id), f"reload {experiment_id}")

    async def _reload(self, experiment_id: str) -> None:
        await self._outside.clock.sleep(_RELOAD_DELAY_S)
        if not self._closing:
            await self.find(experiment_id)
