"""Composition root of the compressor: opens the bus, follows jobs, serves gRPC."""

from collections.abc import Mapping

from nni_proto.compression.v1 import compression_service_pb2, compression_service_pb2_grpc
from svc_common import environment, subjects
from svc_common.access.security import Guard
from svc_common.clock import SystemClock
from svc_common.lifecycle import Service
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.metrics_listener import serve_metrics
from svc_common.rpc.call_telemetry import CallMetrics
from svc_common.rpc.server import GrpcServer
from svc_common.telemetry.metrics import Registry, process_registry
from svc_common.telemetry.tracing import open_tracer
from svc_compressor.servicers.compression_servicer import CompressionServicer
from svc_compressor.sessions.job_session import job_sessions
from svc_compressor.settings import Settings, read_settings
from svc_compressor.telemetry import Telemetry


async def build(service: Service) -> Mapping[str, str]:
    """Read settings, build and start the compressor; return its addresses by name."""
    settings = read_settings()
    bus = await _open_bus(service, settings)
    registry = process_registry("compressor", settings.version)
    service.loop_watchdog.register(registry)
    tracer = await open_tracer(service.adapters, "compressor", settings.version)
    guard = Guard.open(settings.security, settings.token, settings.home)
    service.adapters.callback(guard.close)
    address = await _serve_grpc(service, settings, guard, registry)
    facts = {"grpc": address, **await serve_metrics(service, registry, guard)}
    clock = SystemClock()
    sessions = job_sessions(bus.events, bus.inbox, clock, Telemetry(clock, registry, tracer))
    service.takes_work_if(lambda: bus.connected)
    service.add_consumer(sessions.aclose)
    service.tasks.start(sessions.run(), "jobs")
    return facts


async def _open_bus(service: Service, settings: Settings) -> NatsBus:
    wanted = NatsSettings.confined(
        settings.nats_url,
        settings.security,
        token=settings.token,
        name=subjects.COMPRESSOR,
        replicas=settings.replicas,
    )
    return await service.adapters.enter_async_context(NatsBus(wanted))


async def _serve_grpc(
    service: Service, settings: Settings, guard: Guard, registry: Registry
) -> str:
    name = compression_service_pb2.DESCRIPTOR.services_by_name["CompressionService"].full_name
    server = GrpcServer([name], guard, environment.NNI_COMPRESSOR_GRPC, CallMetrics(registry))
    server.register(
        lambda grpc_server: compression_service_pb2_grpc.add_CompressionServiceServicer_to_server(
            CompressionServicer(), grpc_server
        )
    )
    port = await server.start(settings.grpc_host, settings.grpc_port)
    service.on_stopping(server.set_not_serving)
    service.add_server(server.stop)
    return f"{settings.grpc_host}:{port}"
