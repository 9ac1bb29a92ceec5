"""Composition root of the manager: opens adapters, builds the components, serves, shuts down."""

import asyncio
import platform
import secrets
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import grpc.aio

from nni_proto.bytes.v1 import byte_service_pb2_grpc
from nni_proto.experiment.v1 import (
    experiment_service_pb2_grpc,
    history_service_pb2_grpc,
    study_service_pb2_grpc,
)
from nni_proto.runner.v1 import invitation_service_pb2_grpc, pool_service_pb2_grpc
from nni_proto.trial.v1 import trial_service_pb2_grpc
from nni_wire.pools import LOCAL_POOL
from svc_common import environment
from svc_common.access.delegation import Delegation
from svc_common.access.security import Guard
from svc_common.clock import SystemClock
from svc_common.errors import ServiceError
from svc_common.experiment_events.causes import ExperimentCause
from svc_common.experiment_files import ExperimentRoots
from svc_common.kept_listeners import KeptListeners
from svc_common.lifecycle import Service
from svc_common.logs import get_logger
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.ports import Bus
from svc_common.rpc.call_telemetry import CallMetrics
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_common.storage.factory import open_blob_store
from svc_common.storage.metrics import BlobMetrics, with_metrics
from svc_common.storage.ports import BlobStore
from svc_common.storage.retries import RetryingBlobStore
from svc_common.telemetry.metrics import process_registry
from svc_common.telemetry.tracing import open_tracer
from svc_manager.actors.leasing import Ownership
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.adapters.caching_analyst import CachingAnalyst
from svc_manager.adapters.caller_turns import CallerTurns
from svc_manager.adapters.experiment_folders import LocalFolders
from svc_manager.adapters.folder_journals import FolderJournals
from svc_manager.adapters.forwarding_grpc_server import ForwardingGrpcServer
from svc_manager.adapters.grpc_algorithm_checker import GrpcAlgorithmChecker
from svc_manager.adapters.grpc_analyst import GrpcAnalyst
from svc_manager.adapters.grpc_forwarding import Channels, Forwarder
from svc_manager.adapters.grpc_job_checker import (
    GrpcExplorationChecker,
    GrpcJobChecker,
    JobCheckers,
    NoService,
)
from svc_manager.adapters.grpc_peers import GrpcPeers, NoPeers
from svc_manager.adapters.grpc_replayer import GrpcReplayer
from svc_manager.adapters.inotify_watch import InotifyWatches
from svc_manager.adapters.memory_leases import InMemoryLeases
from svc_manager.adapters.other_users import other_human_users
from svc_manager.adapters.pool_secret_files import PoolSecretFiles
from svc_manager.adapters.probes import dispatcher_probe, store_probe, views_probe
from svc_manager.adapters.random_ids import RandomIds
from svc_manager.adapters.saved_folders import LocalSavedFolders
from svc_manager.agents.presence_cache import PresenceCache
from svc_manager.blobs.large_values import LargeValues
from svc_manager.domain.experiment import CLOSED_STATES
from svc_manager.domain.lease import ManagerId
from svc_manager.ports import AlgorithmChecker, Analyst, JobChecker, Listeners, Peers, Presences
from svc_manager.servicers.byte_servicer import ByteServicer
from svc_manager.servicers.experiment_servicer import ExperimentServicer
from svc_manager.servicers.history_servicer import HistoryServicer
from svc_manager.servicers.invitation_servicer import InvitationServicer
from svc_manager.servicers.pool_servicer import PoolServicer
from svc_manager.servicers.study_servicer import StudyServicer
from svc_manager.servicers.trial_servicer import TrialServicer
from svc_manager.settings import Settings
from svc_manager.telemetry.metrics import Instruments
from svc_manager.telemetry.telemetry import Telemetry
from svc_manager.usecases.analyses import Analyses
from svc_manager.usecases.archives import ArchiveDependencies, Archives
from svc_manager.usecases.config_checks import PLATFORMS
from svc_manager.usecases.diagnosis import Probe
from svc_manager.usecases.fleet_demand import demand_fleet
from svc_manager.usecases.folder_admission import FolderAdmission
from svc_manager.usecases.histories import Histories
from svc_manager.web.dependencies import WebDependencies
from svc_manager.web.forwarder import HttpForwarder
from svc_manager.web.listeners.connection_limits import ConnectionQuota, raise_descriptor_limit
from svc_manager.web.listeners.server import WebServer
from svc_manager.wiring import Manager, ManagerDependencies, Stores, build_manager


def build_with_local_adapters(  # noqa: PLR0913 - all that differs between installations and tests
    settings: Settings,
    bus: Bus,
    stores: Stores,
    listeners: Listeners,
    checker: AlgorithmChecker,
    jobs: JobChecker,
    probes: Mapping[str, Probe] | None = None,
    me: ManagerId | None = None,
    peers: Peers | None = None,
    analyst: Analyst | None = None,
    telemetry: Telemetry | None = None,
    platforms: Collection[str] = PLATFORMS,
) -> Manager:
    """Build a manager from a bus, stores and listeners; add the adapters all installations use.

    Args:
        settings: of this process.
        bus: open.
        stores: open.
        listeners: web servers of experiments with a port.
        checker: validates algorithms.
        jobs: validates compression jobs and explorations.
        probes: probes of the diagnosis, beside bus and agents.
        me: identity of this manager; None: it is the only one.
        peers: the other managers.
        analyst: computes analyses; None: constraints are not checked.
        telemetry: metrics and traces; None: discarded.
        platforms: those that experiments may name.
    """
    clock = SystemClock()
    roots = ExperimentRoots(settings.roots)
    return build_manager(
        ManagerDependencies(
            settings=settings,
            bus=bus,
            stores=stores,
            listeners=listeners,
            checker=checker,
            jobs=jobs,
            peers=peers or NoPeers(),
            leases=stores.leases or InMemoryLeases(clock),
            clock=clock,
            ids=RandomIds(),
            journals=FolderJournals(roots),
            folders=LocalFolders(roots),
            watches=InotifyWatches(),
            patient_blobs=RetryingBlobStore(stores.blobs, clock),
            machine=platform.node(),
            secrets=PoolSecretFiles(settings.home),
            me=me or ManagerId("alone"),
            analyst=analyst,
            probes=probes or {},
            telemetry=telemetry or Telemetry(),
            platforms=platforms,
            has_fleet=settings.has_fleet,
        )
    )


async def open_stores(service: Service, settings: Settings) -> Stores:
    """Open the blob store, and Redis if a URL is set; return stores of blobs, views, leases."""
    adapters = service.adapters
    blobs = await adapters.enter_async_context(open_blob_store(settings.home, settings.s3))
    if settings.redis_url is None:
        return Stores(blobs, BlobViews(blobs))
    # Costs 5 MB of memory, which the local installation saves.
    from svc_manager.adapters.redis_connection import RedisConnection
    from svc_manager.adapters.redis_leases import RedisLeases
    from svc_manager.adapters.redis_presences import RedisPresences
    from svc_manager.adapters.redis_views import RedisViews

    redis = await adapters.enter_async_context(
        RedisConnection(settings.redis_url, settings.security.transport.ca)
    )
    return Stores(blobs, RedisViews(redis), RedisPresences(redis), RedisLeases(redis))


def open_guard(service: Service, settings: Settings) -> Guard:
    """Build authentication and TLS from the settings; refuse unencrypted Redis or S3 elsewhere.

    Raises:
        FailedPreconditionError: a connection to another machine would be unencrypted.
        InvalidArgumentError: a file of the settings cannot be used.
    """
    guard = Guard.open(settings.security, settings.token, settings.home)
    service.adapters.callback(guard.close)
    guard.transport.check_url(environment.NNI_REDIS_URL, settings.redis_url)
    if settings.s3 is not None:
        guard.transport.check_url(environment.NNI_S3_ENDPOINT, settings.s3.endpoint)
    return guard


async def open_bus(service: Service, settings: Settings) -> NatsBus:
    """Connect to NATS; create the streams and the queue of the pool `local`; return the bus."""
    wanted = NatsSettings.of(
        settings.nats_url,
        settings.security,
        token=settings.token,
        name="manager",
        replicas=settings.replicas,
    )
    bus = await service.adapters.enter_async_context(NatsBus(wanted))
    await bus.tasks.open_pool(LOCAL_POOL)
    return bus


def is_private(settings: Settings) -> bool:
    """Return the setting for private reading; unset: whether other people can use this host."""
    if settings.private is not None:
        return settings.private
    others = other_human_users()
    if others:
        get_logger().info(
            "reading needs the token: other people can log in", users=others[:5], count=len(others)
        )
    return bool(others)


async def build(service: Service, settings: Settings) -> Mapping[str, str]:
    """Compose and start the manager process from its settings; return its ready addresses."""
    adapters = service.adapters
    guard = open_guard(service, settings)
    web = _web_server(settings, guard)
    bus = await open_bus(service, settings)
    channel = await adapters.enter_async_context(
        open_channel(settings.dispatcher_address, guard.transport)
    )
    registry = process_registry("manager", settings.version)
    service.loop_watchdog.register(registry)
    tracer = await open_tracer(adapters, "manager", settings.version)
    stores = await open_stores(service, settings)
    stores = replace(stores, blobs=with_metrics(stores.blobs, BlobMetrics(registry)))
    turns = CallerTurns()
    analyst = CachingAnalyst(GrpcAnalyst(channel, settings.token), turns)
    boot_id = secrets.token_hex(8)
    channels = Channels(lambda address: open_channel(address, guard.transport, settings.tls_name))
    adapters.push_async_callback(channels.aclose)
    manager = build_with_local_adapters(
        settings,
        bus,
        stores,
        web,
        GrpcAlgorithmChecker(channel, settings.token, turns),
        await _open_job_checker(service, settings, guard),
        _probes(settings, stores, channel),
        ManagerId(boot_id),
        GrpcPeers(channels, settings.token, boot_id),
        analyst,
        Telemetry(Instruments(registry), tracer),
    )
    replayer = GrpcReplayer(channel, settings.token)
    histories = _history_servicer(manager, replayer, bus, stores.blobs, settings)
    delegation = Delegation(guard.authenticator, settings.token)
    forwarder = Forwarder(channels, boot_id, manager.ownership.until_moved, delegation)
    servers = _GrpcServers(forwarder, guard, CallMetrics(registry), manager, histories)
    grpc_server = servers.build(environment.NNI_MANAGER_GRPC)
    analyses = Analyses(manager.registry, LargeValues(stores.blobs), analyst)
    http_forwarder = _http_forwarder(
        boot_id, guard, manager.ownership, settings.tls_name, delegation
    )
    facts = await serve(service, settings, manager, grpc_server, web, analyses, http_forwarder)
    await _serve_front(service, settings.front_grpc_address, servers)
    await take_over(service, manager, bus, stores.presences)
    _start_fleet_demand(service, settings, bus)
    web.free_ports(frozenset(actor.experiment.port for actor in manager.registry.actors()))
    return facts


@dataclass(frozen=True, slots=True)
class _GrpcServers:
    """Builder of gRPC servers with all services of the manager."""

    forwarder: Forwarder
    guard: Guard
    metrics: CallMetrics
    manager: Manager
    histories: HistoryServicer

    def build(self, setting: str, *, agents_only: bool = False) -> GrpcServer:
        """Build a gRPC server with all services for a setting's address; it is not started."""
        server = ForwardingGrpcServer(
            self.forwarder, SERVICES, self.guard, setting, self.metrics, agents_only=agents_only
        )
        register(server, self.manager, self.histories)
        return server


async def _serve_front(service: Service, address: str, servers: _GrpcServers) -> None:
    """Start a gRPC server for agents that call through a fleet's TLS front; empty address: none."""
    if not address:
        return
    server = servers.build(environment.NNI_MANAGER_FRONT_GRPC, agents_only=True)
    host, port = environment.parse_address(environment.NNI_MANAGER_FRONT_GRPC, address)
    service.on_stopping(server.set_not_serving)
    await server.start(host, port)
    service.add_server(server.stop)


def _start_fleet_demand(service: Service, settings: Settings, bus: Bus) -> None:
    """Start the task that asks the supervisor for the fleet as soon as a pool needs it."""
    if settings.fleet_descriptor < 0:
        return
    supervisor = service.adapters.enter_context(socket.socket(fileno=settings.fleet_descriptor))
    supervisor.set_inheritable(False)

    def demand() -> None:
        with suppress(OSError):  # the supervisor has ended
            supervisor.send(b".")

    service.tasks.start(demand_fleet(bus.last_values, demand), "demand for the fleet")


async def _open_job_checker(service: Service, settings: Settings, guard: Guard) -> JobChecker:
    jobs: JobChecker = NoService("compressor", environment.NNI_COMPRESSOR_GRPC)
    explorations: JobChecker = NoService("NAS service", environment.NNI_NAS_GRPC)
    if settings.compressor_address:
        channel = open_channel(settings.compressor_address, guard.transport)
        opened = await service.adapters.enter_async_context(channel)
        jobs = GrpcJobChecker(opened, settings.token)
    if settings.nas_address:
        channel = open_channel(settings.nas_address, guard.transport)
        opened = await service.adapters.enter_async_context(channel)
        explorations = GrpcExplorationChecker(opened, settings.token)
    return JobCheckers(jobs, explorations)


def _web_server(settings: Settings, guard: Guard) -> WebServer:
    http_host, _ = environment.parse_address(environment.NNI_MANAGER_HTTP, settings.http_address)
    return WebServer(
        settings.token,
        http_host,
        guard=guard,
        quota=ConnectionQuota.of_descriptors(raise_descriptor_limit()),
        private=is_private(settings),
        kept=KeptListeners.inherited(settings.listeners_descriptor),
    )


def _probes(settings: Settings, stores: Stores, channel: grpc.aio.Channel) -> Mapping[str, Probe]:
    """Return the diagnosis's checks by name: dispatcher, byte store, and Redis if it is used."""
    probes = {
        "dispatcher": dispatcher_probe(channel, settings.dispatcher_address),
        "byte store": store_probe(stores.blobs),
    }
    if settings.redis_url is not None:
        probes["redis"] = views_probe(stores.views)
    return probes


def _http_forwarder(
    boot_id: str, guard: Guard, ownership: Ownership, tls_name: str, delegation: Delegation
) -> HttpForwarder:
    transport = guard.transport
    tls = transport.client_context() if transport.listens_encrypted else None
    return HttpForwarder(boot_id, tls, ownership.until_moved, tls_name, delegation)


def _history_servicer(
    manager: Manager, replayer: GrpcReplayer, bus: Bus, blobs: BlobStore, settings: Settings
) -> HistoryServicer:
    """Build the gRPC servicer that replays, saves and loads experiments, with its adapters."""
    folders = LocalSavedFolders(ExperimentRoots(settings.roots))
    admission = FolderAdmission(settings.roots)
    ports = ArchiveDependencies(bus.events, blobs, folders, RandomIds(), SystemClock(), admission)
    return HistoryServicer(
        Histories(manager.registry, replayer),
        Archives(manager.registry, ports, settings.default_root, settings.version),
    )


async def take_over(
    service: Service, manager: Manager, bus: Bus, presences: Presences | None
) -> None:
    """Load experiments; start tasks for presence messages, leases, silent agents and garbage."""
    if presences is not None:
        cache = PresenceCache(bus.signals, presences, manager.agents)
        await cache.recall()
        service.tasks.start(cache.listen(), "presences")
        service.tasks.start(cache.write(), "write presences")
    await manager.registry.open()
    if manager.ownership.shared:
        service.tasks.start(manager.registry.keep(), "leases")
    manager.agents.attach(manager.registry)
    service.tasks.start(manager.agents.listen(), "agents")
    service.tasks.start(manager.pools.listen(), "states of pools")
    service.tasks.start(manager.agents.watch_pauses(), "pauses of this process")
    service.tasks.start(manager.agents.watch(), "silent agents")
    service.tasks.start(manager.agents.extend_deadlines(), "bus away")
    service.tasks.start(manager.registry.watch_inbox(), "inbox continues")
    service.tasks.start(manager.registry.watch_streams(), "streams exist")
    service.tasks.start(manager.blob_services.collector.run(), "collect garbage")
    service.tasks.start(manager.deletions.run(), "give back disk")
    manager.blob_services.collector.request()
    service.tasks.start(manager.experiments.start_job_services(), "jobs")


async def release(manager: Manager, *, stop_first: bool) -> None:
    """At shutdown, stop all experiments if asked; then release leases that managers share.

    Runs before the servers stop: clients that wait for an experiment go on at its next owner.
    """
    if stop_first:
        await stop_all(manager)
    if manager.ownership.shared:
        await manager.registry.aclose()


async def stop_all(manager: Manager) -> None:
    """Stop all open experiments concurrently with cause MANAGER_TERMINATED; log failures."""
    live = [
        actor.id
        for actor in manager.registry.actors()
        if actor.experiment.created and actor.experiment.state not in CLOSED_STATES
    ]
    results = await asyncio.gather(
        *(
            manager.experiments.stop(experiment_id, cause=ExperimentCause.MANAGER_TERMINATED)
            for experiment_id in live
        ),
        return_exceptions=True,
    )
    for experiment_id, result in zip(live, results, strict=True):
        if isinstance(result, ServiceError):
            get_logger().warning(
                "experiment not stopped", experiment=experiment_id, error=result.message
            )


SERVICES: Final = (
    "nni_proto.bytes.v1.ByteService",
    "nni_proto.experiment.v1.ExperimentService",
    "nni_proto.experiment.v1.HistoryService",
    "nni_proto.experiment.v1.StudyService",
    "nni_proto.runner.v1.InvitationService",
    "nni_proto.runner.v1.PoolService",
    "nni_proto.trial.v1.TrialService",
)
"""gRPC services of the manager."""


def register(server: GrpcServer, manager: Manager, histories: HistoryServicer) -> None:
    """Register all gRPC services of the manager on a server."""
    experiments = ExperimentServicer(
        manager.experiments, manager.agent_directory, manager.diagnosis
    )
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
        lambda raw: study_service_pb2_grpc.add_StudyServiceServicer_to_server(
            StudyServicer(manager.shared_studies), raw
        )
    )
    server.register(
        lambda raw: byte_service_pb2_grpc.add_ByteServiceServicer_to_server(
            ByteServicer(manager.blob_services.transfers, manager.blob_services.storage), raw
        )
    )
    server.register(
        lambda raw: invitation_service_pb2_grpc.add_InvitationServiceServicer_to_server(
            InvitationServicer(manager.invitations), raw
        )
    )
    server.register(
        lambda raw: history_service_pb2_grpc.add_HistoryServiceServicer_to_server(histories, raw)
    )
    server.register(
        lambda raw: pool_service_pb2_grpc.add_PoolServiceServicer_to_server(
            PoolServicer(manager.installation_pools), raw
        )
    )


async def serve(
    service: Service,
    settings: Settings,
    manager: Manager,
    grpc_server: GrpcServer,
    web: WebServer,
    analyses: Analyses,
    forwarder: HttpForwarder,
) -> dict[str, str]:
    """Start gRPC and HTTP servers and register their shutdown; return their addresses by name."""
    service.on_stopping(grpc_server.set_not_serving)
    host, wanted_port = environment.parse_address(
        environment.NNI_MANAGER_GRPC, settings.grpc_address
    )
    grpc_port = await grpc_server.start(host, wanted_port)
    service.add_server(grpc_server.stop)
    dependencies = WebDependencies(
        manager.experiments,
        manager.trials,
        settings.version,
        settings.public_grpc or f"{host}:{grpc_port}",
        analyses=analyses,
        agents=manager.agent_directory,
        instruments=manager.telemetry.instruments,
        environment=environment.for_user_code(),
        other_versions=lambda: manager.agent_directory.other_versions(settings.version),
        folders=ExperimentRoots(settings.roots),
        forwarder=forwarder,
    )
    http_host, wanted_http_port = environment.parse_address(
        environment.NNI_MANAGER_HTTP, settings.http_address
    )
    http_port = await web.serve(
        dependencies, wanted_http_port, inherited_socket(settings.http_descriptor)
    )
    service.add_server(web.aclose)
    manager.ownership.set_addresses(
        f"{settings.reached_at(host)}:{grpc_port}", f"{settings.reached_at(http_host)}:{http_port}"
    )
    service.adapters.push_async_callback(manager.registry.aclose)
    service.add_consumer(lambda: release(manager, stop_first=settings.stop_on_term))
    return {"grpc": f"{host}:{grpc_port}", "http": f"{web.scheme}://{http_host}:{http_port}"}


def inherited_socket(descriptor: int) -> socket.socket | None:
    """Return a socket object for an inherited file descriptor; None if it is negative.

    It stays open in the supervisor: connections wait there while this process restarts.
    """
    if descriptor < 0:
        return None
    inherited = socket.socket(fileno=descriptor)
    inherited.set_inheritable(False)
    inherited.setblocking(False)  # noqa: FBT003 - as above
    return inherited
