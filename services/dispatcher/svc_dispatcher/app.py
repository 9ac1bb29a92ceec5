"""Composition root of the dispatcher: opens the adapters and wires the use cases to them."""

from collections.abc import Mapping

from nni_proto.tuning.v1 import (
    algorithm_service_pb2,
    algorithm_service_pb2_grpc,
    analysis_service_pb2,
    analysis_service_pb2_grpc,
)
from svc_common import environment
from svc_common.access.security import Guard
from svc_common.clock import SystemClock
from svc_common.lifecycle import Service
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.metrics_listener import serve_metrics
from svc_common.rpc.call_telemetry import CallMetrics
from svc_common.rpc.server import GrpcServer
from svc_common.stopped_children import stopped_children_continued
from svc_common.storage.factory import open_blob_store
from svc_common.storage.large_values import LargeValues
from svc_common.telemetry.metrics import Registry, process_registry
from svc_common.telemetry.tracing import open_tracer
from svc_dispatcher.adapters.check_processes import CheckProcesses
from svc_dispatcher.adapters.child_class_checker import ChildClassChecker
from svc_dispatcher.adapters.child_importance_meter import ChildImportanceMeter
from svc_dispatcher.adapters.host_launcher import SelectingHostLauncher
from svc_dispatcher.adapters.registry_catalog import RegistryCatalog
from svc_dispatcher.adapters.scratch_hosts import ScratchHostLauncher
from svc_dispatcher.servicers.algorithm_servicer import AlgorithmServicer
from svc_dispatcher.servicers.analysis_servicer import AnalysisServicer
from svc_dispatcher.sessions.generation import SessionDependencies
from svc_dispatcher.sessions.registry import session_registry
from svc_dispatcher.settings import Settings, read_settings
from svc_dispatcher.telemetry import Telemetry
from svc_dispatcher.usecases.algorithms import Algorithms
from svc_dispatcher.usecases.analyses import Analyses
from svc_dispatcher.usecases.replays import ReplayDependencies, Replays


async def build(service: Service) -> Mapping[str, str]:
    """Read settings, build and start the dispatcher; return its addresses by name."""
    settings = read_settings()
    service.adapters.enter_context(stopped_children_continued())
    bus = await _open_bus(service, settings)
    blobs = await service.adapters.enter_async_context(
        open_blob_store(settings.home, settings.s3, waits=True)
    )
    values, clock, launcher = (
        LargeValues(blobs),
        SystemClock(),
        SelectingHostLauncher(settings.inherited, settings.security.transport, settings.code_user),
    )
    replays = Replays(
        ReplayDependencies(
            events=bus.events,
            blobs=values,
            launcher=ScratchHostLauncher(launcher, settings.inherited, settings.code_user),
            clock=clock,
            answer_timeout_s=settings.answer_timeout_s,
        )
    )
    registry = process_registry("dispatcher", settings.version)
    service.loop_watchdog.register(registry)
    tracer = await open_tracer(service.adapters, "dispatcher", settings.version)
    guard = Guard.open(settings.security, settings.token, settings.home)
    service.adapters.callback(guard.close)
    address = await _serve_grpc(service, settings, guard, replays, registry)
    facts = {"grpc": address, **await serve_metrics(service, registry, guard)}
    experiments = session_registry(
        SessionDependencies(
            events=bus.events,
            inbox=bus.inbox,
            blobs=values,
            launcher=launcher,
            clock=clock,
            answer_timeout_s=settings.answer_timeout_s,
            idle_limit_s=settings.idle_limit_s,
            telemetry=Telemetry(clock, registry, tracer),
        )
    )
    service.takes_work_if(lambda: bus.connected)
    service.add_consumer(experiments.aclose)
    service.tasks.start(experiments.run(), "experiments")
    return facts


async def _open_bus(service: Service, settings: Settings) -> NatsBus:
    wanted = NatsSettings.confined(
        settings.nats_url,
        settings.security,
        token=settings.token,
        name="dispatcher",
        replicas=settings.replicas,
    )
    return await service.adapters.enter_async_context(NatsBus(wanted))


async def _serve_grpc(
    service: Service, settings: Settings, guard: Guard, replays: Replays, registry: Registry
) -> str:
    if settings.s3 is not None:
        guard.transport.check_url(environment.NNI_S3_ENDPOINT, settings.s3.endpoint)
    server = GrpcServer(
        [
            algorithm_service_pb2.DESCRIPTOR.services_by_name["AlgorithmService"].full_name,
            analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"].full_name,
        ],
        guard,
        environment.NNI_DISPATCHER_GRPC,
        CallMetrics(registry),
    )
    checks = CheckProcesses(settings.inherited, code_user=settings.code_user)
    service.adapters.push_async_callback(checks.aclose)
    service.tasks.start(checks.warm_up(), "warm-up of checks")
    servicer = AlgorithmServicer(
        Algorithms(
            RegistryCatalog(),
            ChildClassChecker(settings.inherited, settings.check_timeout_s, settings.code_user),
        ),
        replays,
        checks,
    )
    server.register(
        lambda grpc_server: algorithm_service_pb2_grpc.add_AlgorithmServiceServicer_to_server(
            servicer, grpc_server
        )
    )
    analyst = AnalysisServicer(
        Analyses(
            ChildImportanceMeter(settings.inherited, settings.answer_timeout_s, settings.code_user)
        ),
        checks,
    )
    server.register(
        lambda grpc_server: analysis_service_pb2_grpc.add_AnalysisServiceServicer_to_server(
            analyst, grpc_server
        )
    )
    port = await server.start(settings.grpc_host, settings.grpc_port)
    service.on_stopping(server.set_not_serving)
    service.add_server(server.stop)
    return f"{settings.grpc_host}:{port}"
