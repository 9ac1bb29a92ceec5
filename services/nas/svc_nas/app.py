"""Composition root of the NAS service: opens bus and blobs, follows explorations, serves gRPC."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nni_proto.nas.v1 import nas_service_pb2, nas_service_pb2_grpc
from svc_common import environment, subjects
from svc_common.access.security import Guard
from svc_common.clock import SystemClock
from svc_common.lifecycle import Service
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.metrics_listener import serve_metrics
from svc_common.rpc.call_telemetry import CallMetrics
from svc_common.rpc.server import GrpcServer
from svc_common.stopped_children import stopped_children_continued
from svc_common.storage.code_archives import CodeArchives
from svc_common.storage.factory import open_blob_store
from svc_common.storage.large_values import LargeValues
from svc_common.telemetry.metrics import Registry, process_registry
from svc_nas.adapters.child_strategy import ChildStrategyLauncher
from svc_nas.servicers.nas_servicer import NasServicer
from svc_nas.sessions.exploration_session import Dependencies, exploration_sessions
from svc_nas.sessions.progress_reader import ProgressReader
from svc_nas.settings import Settings, read_settings
from svc_nas.stored_documents import StoredDocuments
from svc_nas.telemetry import Telemetry

CODE_FOLDER: Final = Path("work", "code")
"""Cache of code archives below the folder of state; strategies may read it."""


async def build(service: Service) -> Mapping[str, str]:
    """Read settings, build and start the NAS service; return its addresses by name."""
    settings = read_settings()
    service.adapters.enter_context(stopped_children_continued())
    bus = await _open_bus(service, settings)
    blobs = await service.adapters.enter_async_context(
        open_blob_store(settings.home, settings.s3, waits=True)
    )
    registry = process_registry("nas", settings.version)
    service.loop_watchdog.register(registry)
    guard = Guard.open(settings.security, settings.token, settings.home)
    service.adapters.callback(guard.close)
    servicer = NasServicer(StoredDocuments(blobs), ProgressReader(bus.events, LargeValues(blobs)))
    address = await _serve_grpc(service, settings, guard, registry, servicer)
    facts = {"grpc": address, **await serve_metrics(service, registry, guard)}
    clock = SystemClock()
    archives = CodeArchives(blobs, settings.home / CODE_FOLDER, clock)
    dependencies = Dependencies(
        events=bus.events,
        inbox=bus.inbox,
        blobs=blobs,
        launcher=ChildStrategyLauncher(settings.inherited, archives, settings.code_user),
        clock=clock,
        telemetry=Telemetry(registry),
    )
    sessions = exploration_sessions(dependencies)
    service.takes_work_if(lambda: bus.connected)
    service.add_consumer(sessions.aclose)
    service.tasks.start(sessions.run(), "explorations")
    return facts


async def _open_bus(service: Service, settings: Settings) -> NatsBus:
    wanted = NatsSettings.confined(
        settings.nats_url,
        settings.security,
        token=settings.token,
        name=subjects.NAS,
        replicas=settings.replicas,
    )
    return await service.adapters.enter_async_context(NatsBus(wanted))


async def _serve_grpc(
    service: Service,
    settings: Settings,
    guard: Guard,
    registry: Registry,
    servicer: NasServicer,
) -> str:
    name = nas_service_pb2.DESCRIPTOR.services_by_name["NasService"].full_name
    server = GrpcServer([name], guard, environment.NNI_NAS_GRPC, CallMetrics(registry))
    server.register(
        lambda grpc_server: nas_service_pb2_grpc.add_NasServiceServicer_to_server(
            servicer, grpc_server
        )
    )
    port = await server.start(settings.grpc_host, settings.grpc_port)
    service.on_stopping(server.set_not_serving)
    service.add_server(server.stop)
    return f"{settings.grpc_host}:{port}"
