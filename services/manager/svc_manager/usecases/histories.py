"""Use cases on the logs of experiments as such: proving them, giving them away, taking them in."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from nni_proto.experiment.v1 import history_service_pb2 as pb
from svc_manager.actors.registry import ActorRegistry


class Replayer(Protocol):
    """Draws the suggestions of an experiment again: the dispatcher."""

    def replay(self, experiment_id: str) -> AsyncGenerator[pb.ReplayExperimentResponse, None]:
        """Give progress, differences and at last the verdict; closing it ends the work.

        Raises:
            NotFoundError: there is no such experiment.
            UnavailableError: the dispatcher cannot be reached.
        """
        ...


class Histories:
    """What can be done with the log of an experiment.

    Args:
        roster: the experiments.
        replayer: the dispatcher.
    """

    def __init__(self, registry: ActorRegistry, replayer: Replayer) -> None:
        self._registry = registry
        self._replayer = replayer

    async def replay(self, experiment_id: str) -> AsyncGenerator[pb.ReplayExperimentResponse, None]:
        """Draw every suggestion again; the last message is the verdict.

        Raises:
            NotFoundError: there is no such experiment.
        """
        await self._registry.view(experiment_id)
        async with aclosing(self._replayer.replay(experiment_id)) as told:
            async for message in told:
                yield message
