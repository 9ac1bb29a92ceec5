"""The experiments of all managers, as lists show them."""

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
"""How long a list waits for another manager, or for the bus; then it shows what was kept last."""


class ClusterListing:
    """Gathers what this manager has, what the others have, and what nobody has open.

    Args:
        roster: what is here.
        ownership: knows the other managers.
        peers: asks them.
        summaries: what was kept of experiments that nobody has open.
        events: the logs, which tell what experiments there are.
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
        """Give all experiments as clients see them, in no order."""
        if not self._ownership.shared:
            return self._registry.views()
        answers = await asyncio.gather(*(self._at(one) for one in self._ownership.others))
        open_ = {view.id: view for views in answers for view in views}
        open_.update((view.id, view) for view in self._registry.owned_views())
        request_record = {view.id: view for view in self._registry.views()}
        known = await self._known()
        if known is None:
            return list((request_record | open_).values())
        # What was kept last may be of any time, but so may be what this manager has noted.
        found = request_record | await self._summaries.latest(known - open_.keys()) | open_
        for experiment_id in known - found.keys():
            view = await self._unseen(experiment_id)
            if view is not None:
                found[experiment_id] = view
        return [view for experiment_id, view in found.items() if experiment_id in known]

    async def _at(self, manager: ManagerId) -> list[experiment_pb2.Experiment]:
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await self._peers.owned(manager)
        except (TimeoutError, ServiceError) as error:
            get_logger().warning(
                "manager not asked for its experiments",
                manager=manager.grpc_address,
                error=str(error),
            )
            return []

    async def _known(self) -> set[str] | None:
        """Give the ids of all experiments; None: the bus is away."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                return set(await self._events.experiments())
        except (TimeoutError, ServiceError):
            return None

    async def _unseen(self, experiment_id: str) -> experiment_pb2.Experiment | None:
        """Give the view of an experiment of which nothing is kept; its log is read for it."""
        try:
            return await self._registry.view(experiment_id)
        except (NotFoundError, OwnedElsewhereError):
            return None  # it is being created, or changing hands
