"""The manager's life between opening and closing: it takes its experiments, and leaves them."""

import asyncio
from typing import Final

from svc_common.errors import ServiceError
from svc_common.lifecycle import Service
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus
from svc_manager.agents.presence_cache import PresenceBoard
from svc_manager.domain.experiment import CLOSED_STATES
from svc_manager.ports import Presences
from svc_manager.wiring import Manager

_TERM_REASON: Final = "the manager was told to end"


async def take_over(
    service: Service, manager: Manager, bus: Bus, presences: Presences | None
) -> None:
    """Load the experiments and begin to listen to agents."""
    if presences is not None:
        board = PresenceBoard(bus.signals, presences, manager.agents)
        await board.recall()
        service.tasks.start(board.listen(), "presences")
        service.tasks.start(board.write(), "keep presences")
    await manager.roster.open()
    if manager.ownership.shared:
        service.tasks.start(manager.roster.keep(), "leases")
    manager.agents.watch_for(manager.roster)
    service.tasks.start(manager.agents.listen(), "agents")
    service.tasks.start(manager.agents.watch(), "silent agents")
    service.tasks.start(manager.agents.forgive(), "bus away")
    service.tasks.start(manager.keeping.collection.run(), "collect garbage")
    manager.keeping.collection.want()


async def leave(manager: Manager, *, stop_first: bool) -> None:
    """Stop all experiments or leave them as they are; other managers take them at once.

    That comes before servers are stopped: whoever waits for an experiment waits elsewhere then.
    """
    if stop_first:
        await stop_all(manager)
    if manager.ownership.shared:
        await manager.roster.aclose()


async def stop_all(manager: Manager) -> None:
    """Stop every experiment that is open, all at once."""
    live = [
        actor.id
        for actor in manager.roster.found()
        if actor.experiment.created and actor.experiment.state not in CLOSED_STATES
    ]
    results = await asyncio.gather(
        *(manager.experiments.stop(experiment_id, reason=_TERM_REASON) for experiment_id in live),
        return_exceptions=True,
    )
    for experiment_id, result in zip(live, results, strict=True):
        if isinstance(result, ServiceError):
            get_logger().warning(
                "experiment not stopped", experiment=experiment_id, error=result.message
            )
