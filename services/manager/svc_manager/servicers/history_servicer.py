"""gRPC servicer that replays, saves and loads experiments."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, TypeAlias

import grpc.aio

from nni_proto.experiment.v1 import history_service_pb2 as pb
from nni_proto.experiment.v1 import history_service_pb2_grpc as pb_grpc
from svc_manager.usecases.archives import Archives
from svc_manager.usecases.histories import Histories

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class HistoryServicer(pb_grpc.HistoryServiceServicer):
    """gRPC servicer that replays, saves and loads experiments: passes streams to use cases.

    Args:
        histories: use cases.
        archives: use cases.
    """

    def __init__(self, histories: Histories, archives: Archives) -> None:
        self._histories = histories
        self._archives = archives

    async def ReplayExperiment(
        self, request: pb.ReplayExperimentRequest, context: Context
    ) -> AsyncIterator[pb.ReplayExperimentResponse]:
        """Replay an experiment's log with a fresh algorithm; stream differences and the verdict."""
        async with aclosing(self._histories.replay(request.experiment_id)) as messages:
            async for message in messages:
                yield message

    async def SaveExperiment(
        self, request: pb.SaveExperimentRequest, context: Context
    ) -> AsyncIterator[pb.SaveExperimentResponse]:
        """Stream an archive: log, large values; unless `without_files` also folder and outputs."""
        saved = self._archives.save(request.experiment_id, with_files=not request.without_files)
        async with aclosing(saved) as messages:
            async for message in messages:
                yield message

    async def LoadExperiment(
        self, request_iterator: AsyncIterator[pb.LoadExperimentRequest], context: Context
    ) -> pb.LoadExperimentResponse:
        """Import an experiment from a streamed archive of SaveExperiment; return it, STOPPED."""
        return pb.LoadExperimentResponse(experiment=await self._archives.load(request_iterator))
