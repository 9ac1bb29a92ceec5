"""Composition root of the dispatcher: opens adapters and builds the rest."""

from collections.abc import Mapping

from nni_proto.tuning.v1 import algorithm_service_pb2, algorithm_service_pb2_grpc
from svc_common.clock import SystemClock
from svc_common.grpc_server import GrpcServer
from svc_common.lifecycle import Service
from svc_common.messaging.nats_bus import NatsBus, NatsSettings
from svc_common.storage.opening import open_blob_store
from svc_dispatcher.adapters.child_class_checker import ChildClassChecker
from svc_dispatcher.adapters.launching import Launcher
from svc_dispatcher.adapters.registry_catalog import RegistryCatalog
from svc_dispatcher.algorithms import Algorithms
from svc_dispatcher.blobs import ValueBlobs
from svc_dispatcher.experiments import Experiments
from svc_dispatcher.life import Surroundings
from svc_dispatcher.servicer import AlgorithmServicer
from svc_dispatcher.settings import Settings, read_settings


async def build(service: Service) -> Mapping[str, str]:
    """Start the dispatcher; return where it listens."""
    settings = read_settings()
    bus = await service.adapters.enter_async_context(
        NatsBus(
            NatsSettings(
                settings.nats_url,
                token=settings.token,
                name="dispatcher",
                replicas=settings.replicas,
            )
        )
    )
    blobs = await service.adapters.enter_async_context(
        open_blob_store(settings.home, settings.s3, waits=True)
    )
    address = await _serve_grpc(service, settings)
    experiments = Experiments(
        Surroundings(
            events=bus.events,
            inbox=bus.inbox,
            blobs=ValueBlobs(blobs),
            launcher=Launcher(settings.inherited),
            clock=SystemClock(),
            answer_timeout_s=settings.answer_timeout_s,
            idle_limit_s=settings.idle_limit_s,
        )
    )
    service.add_consumer(experiments.aclose)
    service.tasks.start(experiments.run(), "experiments")
    return {"grpc": address}


async def _serve_grpc(service: Service, settings: Settings) -> str:
    server = GrpcServer(
        [algorithm_service_pb2.DESCRIPTOR.services_by_name["AlgorithmService"].full_name],
        settings.token,
    )
    servicer = AlgorithmServicer(
        Algorithms(
            RegistryCatalog(), ChildClassChecker(settings.inherited, settings.check_timeout_s)
        )
    )
    server.register(
        lambda grpc_server: algorithm_service_pb2_grpc.add_AlgorithmServiceServicer_to_server(
            servicer, grpc_server
        )
    )
    port = await server.start(settings.grpc_host, settings.grpc_port)
    service.on_stopping(server.say_not_serving)
    service.add_server(server.stop)
    return f"{settings.grpc_host}:{port}"
