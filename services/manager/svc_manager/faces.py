"""The manager's faces: what it offers over gRPC and HTTP, and how they begin to listen."""

from typing import Final

from nni_proto.bytes.v1 import byte_service_pb2_grpc
from nni_proto.experiment.v1 import experiment_service_pb2_grpc, history_service_pb2_grpc
from nni_proto.trial.v1 import trial_service_pb2_grpc
from svc_common import environment
from svc_common.errors import InvalidArgumentError
from svc_common.lifecycle import Service
from svc_common.rpc.server import GrpcServer
from svc_manager.life import leave
from svc_manager.servicers.byte_servicer import ByteServicer
from svc_manager.servicers.experiment_servicer import ExperimentServicer
from svc_manager.servicers.history_servicer import HistoryServicer
from svc_manager.servicers.trial_servicer import TrialServicer
from svc_manager.settings import Settings
from svc_manager.usecases.analyses import Analyses
from svc_manager.web.forwarding import Forwarding
from svc_manager.web.installation import Installation
from svc_manager.web.listeners.server import WebServer
from svc_manager.wiring import Manager

SERVICES: Final = (
    "nni_proto.bytes.v1.ByteService",
    "nni_proto.experiment.v1.ExperimentService",
    "nni_proto.experiment.v1.HistoryService",
    "nni_proto.trial.v1.TrialService",
)
"""gRPC services of the manager."""


def register(server: GrpcServer, manager: Manager, histories: HistoryServicer) -> None:
    """Give a server everything that this process offers over gRPC."""
    experiments = ExperimentServicer(manager.experiments, manager.runners, manager.diagnosis)
    server.register(
        lambda raw: experiment_service_pb2_grpc.add_ExperimentServiceServicer_to_server(
            experiments, raw
        )
    )
    server.register(
        lambda raw: trial_service_pb2_grpc.add_TrialServiceServicer_to_server(
            TrialServicer(manager.trials), raw
        )
    )
    server.register(
        lambda raw: byte_service_pb2_grpc.add_ByteServiceServicer_to_server(
            ByteServicer(manager.keeping.exchange, manager.keeping.storage), raw
        )
    )
    server.register(
        lambda raw: history_service_pb2_grpc.add_HistoryServiceServicer_to_server(histories, raw)
    )


async def serve(
    service: Service,
    settings: Settings,
    manager: Manager,
    grpc_server: GrpcServer,
    web: WebServer,
    analyses: Analyses,
    forwarding: Forwarding,
) -> dict[str, str]:
    """Listen for gRPC and HTTP; give both addresses."""
    service.on_stopping(grpc_server.say_not_serving)
    host, wanted_port = address_of("NNI_MANAGER_GRPC", settings.grpc_address)
    grpc_port = await grpc_server.start(host, wanted_port)
    service.add_server(grpc_server.stop)
    installation = Installation(
        manager.experiments,
        manager.trials,
        settings.version,
        f"{host}:{grpc_port}",
        analyses=analyses,
        instruments=manager.witness.instruments,
        environment=environment.for_user_code(),
        other_versions=lambda: manager.runners.other_versions(settings.version),
        forwarding=forwarding,
    )
    http_host, wanted_http_port = address_of("NNI_MANAGER_HTTP", settings.http_address)
    http_port = await web.serve(installation, wanted_http_port)
    service.add_server(web.aclose)
    manager.ownership.listening(
        f"{settings.reached_at(host)}:{grpc_port}", f"{settings.reached_at(http_host)}:{http_port}"
    )
    service.adapters.push_async_callback(manager.roster.aclose)
    service.add_consumer(lambda: leave(manager, stop_first=settings.stop_on_term))
    return {"grpc": f"{host}:{grpc_port}", "http": f"{web.scheme}://{http_host}:{http_port}"}


def address_of(name: str, address: str) -> tuple[str, int]:
    """Split `host:port`.

    Raises:
        InvalidArgumentError: it is none.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidArgumentError(name, "must be host:port", address)
    return host, int(port)
