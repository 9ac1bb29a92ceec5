"""Listing of the experiments of all managers."""

import asyncio
from typing import Final

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.ports import EventLog
from svc_manager.actors.leasing import OwnedElsewhereError, Ownership
from svc_manager.actors.registry import ActorRegistry
from svc_manager.domain.lease import ManagerId
from svc_manager.event_log.summaries import Summaries
from svc_manager.ports import Peers

_ANSWER_S: Final = 2.0
"""Time that a list waits for another manager, or for the bus; then it shows the last summaries."""


class ClusterListing:
    """Listing of all experiments: of this manager, of the others, and without an owner.

    Args:
        registry: experiments of this manager.
        ownership: leases, which name the other managers.
        peers: the other managers.
        summaries: summaries of experiments without an owner.
        events: the logs, which tell the existing experiments.
    """

    def __init__(
        self,
        registry: ActorRegistry,
        ownership: Ownership,
        peers: Peers,
        summaries: Summaries,
        events: EventLog,
    ) -> None:
        self._registry = registry
        self._ownership = ownership
        self._peers = peers
        self._summaries = summaries
        self._events = events

    async def views(self) -> list[experiment_pb2.Experiment]:
        """Return views of all managers' experiments; maybe stale summaries if no owner answers."""
        if not self._ownership.shared:
            return self._registry.views()
        answers = await asyncio.gather(*(self._owned_by(one) for one in self._ownership.others))
        open_ = {view.id: view for views in answers for view in views}
        open_.update((view.id, view) for view in self._registry.owned_views())
        local = {view.id: view for view in self._registry.views()}
        known = await self._known()
        if known is None:
            return list((local | open_).values())
        # Stored summaries may be stale, but so may be those of this manager.
        found = local | await self._summaries.latest(known - open_.keys()) | open_
        for experiment_id in known - found.keys():
            view = await self._unseen(experiment_id)
            if view is not None:
                found[experiment_id] = view
        return [view for experiment_id, view in found.items() if experiment_id in known]

    async def _owned_by(self, manager: ManagerId) -> list[experiment_pb2.Experiment]:
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await self._peers.owned(manager)
        except (TimeoutError, ServiceError) as error:
            get_logger().warning(
                "experiments of a manager not listed",
                manager=manager.grpc_address,
                error=str(error),
            )
            return []

    async def _known(self) -> set[str] | None:
        """Return the ids of all experiments with a log; None: the bus did not respond in time."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                return set(await self._events.experiments())
        except (TimeoutError, ServiceError):
            return None

    async def _unseen(self, experiment_id: str) -> experiment_pb2.Experiment | None:
        """Return the view of an experiment without a summary by loading its log; None: not now."""
        try:
            return await self._registry.view(experiment_id)
        except (NotFoundError, OwnedElsewhereError):
            return None  # it is being created, or changing owners
