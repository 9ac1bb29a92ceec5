"""Use case that proves an experiment repeatable from its log."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from nni_proto.experiment.v1 import history_service_pb2 as pb
from svc_manager.actors.registry import ActorRegistry


class Replayer(Protocol):
    """Port of the dispatcher that replays the suggestions of an experiment."""

    def replay(self, experiment_id: str) -> AsyncGenerator[pb.ReplayExperimentResponse, None]:
        """Yield progress, differences and at last the verdict.

        Closing the generator ends the replay.

        Raises:
            NotFoundError: there is no such experiment.
            UnavailableError: the dispatcher cannot be reached.
        """
        ...


class Histories:
    """Use case on the history of an experiment.

    Args:
        registry: registry of the actors.
        replayer: the dispatcher.
    """

    def __init__(self, registry: ActorRegistry, replayer: Replayer) -> None:
        self._registry = registry
        self._replayer = replayer

    async def replay(self, experiment_id: str) -> AsyncGenerator[pb.ReplayExperimentResponse, None]:
        """Replay every suggestion; the last message is the verdict.

        Raises:
            NotFoundError: there is no such experiment.
        """
        await self._registry.view(experiment_id)
        async with aclosing(self._replayer.replay(experiment_id)) as messages:
            async for message in messages:
                yield message
