"""gRPC servicer of `nni_proto.nas.v1.NasService`."""

from typing import Any, Final, TypeAlias

import grpc.aio

from nni_proto.experiment.v1 import config_pb2
from nni_proto.nas.v1 import nas_service_pb2 as pb
from nni_proto.nas.v1 import nas_service_pb2_grpc as pb_grpc
from nni_wire.values import to_value
from svc_common import subjects
from svc_nas.converters.exploration_views import checked_exploration, exploration_view
from svc_nas.sessions.progress_reader import ProgressReader
from svc_nas.stored_documents import StoredDocuments

_Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
_TOP_LIMIT: Final = 1_000


class NasServicer(pb_grpc.NasServiceServicer):
    """gRPC servicer of explorations: validation, progress, and export of the best models.

    Args:
        documents: documents of explorations in the blob store.
        progress: reader of their logs.
    """

    def __init__(self, documents: StoredDocuments, progress: ProgressReader) -> None:
        self._documents = documents
        self._progress = progress

    async def ValidateExploration(
        self, request: pb.ValidateExplorationRequest, context: _Context
    ) -> pb.ValidateExplorationResponse:
        """Raise InvalidArgumentError unless fields are valid and the document is stored."""
        del context
        config: config_pb2.NasConfig = checked_exploration(request.exploration)
        await self._documents.check(config.document)
        return pb.ValidateExplorationResponse()

    async def GetExploration(
        self, request: pb.GetExplorationRequest, context: _Context
    ) -> pb.GetExplorationResponse:
        """Fold an exploration's log and return its progress; NotFoundError: there is none."""
        del context
        experiment_id = subjects.check_id("experiment_id", request.experiment_id)
        progress = await self._progress.read(experiment_id)
        return pb.GetExplorationResponse(exploration=exploration_view(experiment_id, progress))

    async def ExportTopModels(
        self, request: pb.ExportTopModelsRequest, context: _Context
    ) -> pb.ExportTopModelsResponse:
        """Return an exploration's best models, largest final metric first, up to the limit."""
        del context
        experiment_id = subjects.check_id("experiment_id", request.experiment_id)
        progress = await self._progress.read(experiment_id)
        models = [
            pb.TopModel(
                sample=to_value(one.sample), metric=to_value(one.metric), trial_id=one.trial_id
            )
            for one in progress.top(min(request.limit, _TOP_LIMIT) or 1)
        ]
        return pb.ExportTopModelsResponse(models=models)
