"""Use case that proves an experiment repeatable from its log."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from nni_proto.experiment.v1 import history_service_pb2 as pb
from svc_manager.actors.registry import ActorRegistry


class Replayer(Protocol):
    """Interface by which the dispatcher replays an experiment's algorithm from its log."""

    def replay(self, experiment_id: str) -> AsyncGenerator[pb.ReplayExperimentResponse, None]:
        """Replay an experiment's algorithm; yield progress, differences and at last the verdict.

        Closing the generator ends the replay.

        Raises:
            NotFoundError: there is no such experiment.
            UnavailableError: the dispatcher cannot be reached.
        """
        ...


class Histories:
    """Use case that replays an experiment's history with a fresh algorithm.

    Args:
        registry: registry of the actors.
        replayer: the dispatcher.
    """

    def __init__(self, registry: ActorRegistry, replayer: Replayer) -> None:
        self._registry = registry
        self._replayer = replayer

    async def replay(self, experiment_id: str) -> AsyncGenerator[pb.ReplayExperimentResponse, None]:
        """Make the dispatcher replay an existing experiment; yield its messages, verdict last.

        Raises:
            NotFoundError: there is no such experiment.
        """
        await self._registry.view(experiment_id)
        async with aclosing(self._replayer.replay(experiment_id)) as messages:
            async for message in messages:
                yield message
