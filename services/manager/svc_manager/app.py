"""Composition root of the manager: opens adapters and builds the rest."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nni_proto.experiment.v1 import experiment_service_pb2_grpc
from nni_proto.trial.v1 import trial_service_pb2_grpc
from svc_common import environment
from svc_common.clock import SystemClock
from svc_common.errors import InvalidArgumentError, ServiceError
from svc_common.grpc_client import open_channel
from svc_common.grpc_server import GrpcServer
from svc_common.lifecycle import Service
from svc_common.logs import get_logger
from svc_common.messaging.nats_bus import NatsBus, NatsSettings
from svc_common.messaging.ports import Bus
from svc_common.storage.opening import open_blob_store
from svc_common.storage.patient import PatientBlobStore
from svc_common.storage.ports import BlobStore
from svc_manager.actor import Outside
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.adapters.experiment_folders import LocalFolders
from svc_manager.adapters.folder_journals import FolderJournals
from svc_manager.adapters.grpc_algorithm_checker import GrpcAlgorithmChecker
from svc_manager.adapters.inotify_watch import InotifyWatches
from svc_manager.adapters.random_ids import RandomIds
from svc_manager.agents import AgentWatch
from svc_manager.big_values import BigValues
from svc_manager.deletion import Deletion
from svc_manager.domain.experiment import CLOSED_STATES
from svc_manager.experiments import Experiments
from svc_manager.feeds import LogFeeds
from svc_manager.metric_book import MetricBooks
from svc_manager.opening import OpeningPorts, Openings
from svc_manager.ports import AlgorithmChecker, Listeners, Presences, Views
from svc_manager.presence_board import PresenceBoard
from svc_manager.roster import Roster
from svc_manager.runners import Runners
from svc_manager.servicer import ExperimentServicer
from svc_manager.settings import Settings
from svc_manager.summaries import Summaries
from svc_manager.trial_servicer import TrialServicer
from svc_manager.trials import Trials
from svc_manager.web.route import Installation
from svc_manager.web.server import WebServer

SERVICES: Final = (
    "nni_proto.experiment.v1.ExperimentService",
    "nni_proto.trial.v1.TrialService",
)
"""gRPC services of the manager."""
_TERM_REASON: Final = "the manager was told to end"


@dataclass(frozen=True, slots=True)
class Stores:
    """What the manager keeps beside the logs."""

    blobs: BlobStore
    views: Views
    presences: Presences | None = None
    """None: agents are known when they speak."""


@dataclass(frozen=True, slots=True)
class Manager:
    """The manager without its faces."""

    roster: Roster
    agents: AgentWatch
    experiments: Experiments
    trials: Trials
    runners: Runners


def assemble(
    settings: Settings,
    bus: Bus,
    stores: Stores,
    listeners: Listeners,
    checker: AlgorithmChecker,
) -> Manager:
    """Put the parts together; nothing is started.

    Args:
        settings: of this process.
        bus: open.
        stores: open.
        listeners: where experiments get their ports.
        checker: the dispatcher.
    """
    clock = SystemClock()
    ids = RandomIds()
    agents = AgentWatch(bus, clock)
    summaries = Summaries(stores.views, stores.blobs)
    journals = FolderJournals()
    folders = LocalFolders()
    big_values = BigValues(stores.blobs)
    books = MetricBooks(bus.events)
    # An effect follows from a fact and must come to pass, so it waits for a store that is away;
    # a client is told.
    for_effects = BigValues(PatientBlobStore(stores.blobs, clock))
    roster = Roster(Outside(bus, clock, ids, listeners, agents, summaries, for_effects), journals)
    ports = OpeningPorts(bus.events, journals, folders, listeners, checker, ids, clock)
    openings = Openings(roster, ports, big_values, settings.default_root, settings.version)
    experiments = Experiments(
        roster,
        openings,
        big_values,
        checker,
        books,
        LogFeeds(InotifyWatches()),
        Deletion(bus, folders, summaries),
    )
    return Manager(
        roster,
        agents,
        experiments,
        Trials(roster, big_values, books),
        Runners(agents, bus.signals),
    )


async def open_stores(service: Service, settings: Settings) -> Stores:
    """Open what the settings name: the local shape needs no server."""
    adapters = service.adapters
    blobs = await adapters.enter_async_context(open_blob_store(settings.home, settings.s3))
    if settings.redis_url is None:
        return Stores(blobs, BlobViews(blobs))
    # Costs 5 MB that the local shape need not have.
    from svc_manager.adapters.redis_connection import RedisConnection
    from svc_manager.adapters.redis_presences import RedisPresences
    from svc_manager.adapters.redis_views import RedisViews

    redis = await adapters.enter_async_context(RedisConnection(settings.redis_url))
    return Stores(blobs, RedisViews(redis), RedisPresences(redis))


async def build(service: Service, settings: Settings) -> Mapping[str, str]:
    """Open everything, take over the experiments, serve; return the facts of readiness."""
    adapters = service.adapters
    bus = await adapters.enter_async_context(
        NatsBus(NatsSettings(settings.nats_url, settings.token, "manager", settings.replicas))
    )
    channel = await adapters.enter_async_context(open_channel(settings.dispatcher_address))
    web = WebServer(settings.token, address_of("NNI_MANAGER_HTTP", settings.http_address)[0])
    stores = await open_stores(service, settings)
    checker = GrpcAlgorithmChecker(channel, settings.token)
    manager = assemble(settings, bus, stores, web, checker)
    grpc_server = GrpcServer(SERVICES, settings.token)
    grpc_server.register(
        lambda server: experiment_service_pb2_grpc.add_ExperimentServiceServicer_to_server(
            ExperimentServicer(manager.experiments, manager.runners), server
        )
    )
    grpc_server.register(
        lambda server: trial_service_pb2_grpc.add_TrialServiceServicer_to_server(
            TrialServicer(manager.trials), server
        )
    )
    service.on_stopping(grpc_server.say_not_serving)
    host, port = address_of("NNI_MANAGER_GRPC", settings.grpc_address)
    grpc_port = await grpc_server.start(host, port)
    grpc_address = f"{host}:{grpc_port}"
    service.add_server(grpc_server.stop)
    http_host, http_port = address_of("NNI_MANAGER_HTTP", settings.http_address)
    base_port = await web.serve(
        Installation(
            manager.experiments,
            manager.trials,
            settings.version,
            grpc_address,
            environment=environment.for_user_code(),
        ),
        http_port,
    )
    service.add_server(web.aclose)
    adapters.push_async_callback(manager.roster.aclose)
    if settings.stop_on_term:
        service.add_consumer(lambda: stop_all(manager))
    await _take_over(service, manager, bus, stores.presences)
    return {"grpc": grpc_address, "http": f"http://{http_host}:{base_port}"}


async def _take_over(
    service: Service, manager: Manager, bus: Bus, presences: Presences | None
) -> None:
    """Load the experiments and begin to listen to agents."""
    if presences is not None:
        board = PresenceBoard(bus.signals, presences, manager.agents)
        await board.recall()
        service.tasks.start(board.listen(), "presences")
        service.tasks.start(board.write(), "keep presences")
    await manager.roster.open()
    manager.agents.watch_for(manager.roster)
    service.tasks.start(manager.agents.listen(), "agents")
    service.tasks.start(manager.agents.watch(), "silent agents")
    service.tasks.start(manager.agents.forgive(), "bus away")


async def stop_all(manager: Manager) -> None:
    """Stop every experiment that is open, all at once."""
    live = [
        actor.id
        for actor in manager.roster.found()
        if actor.experiment.created and actor.experiment.state not in CLOSED_STATES
    ]
    results = await asyncio.gather(
        *(
            manager.experiments.stop(experiment_id, reason="the manager was told to end")
            for experiment_id in live
        ),
        return_exceptions=True,
    )
    for experiment_id, result in zip(live, results, strict=True):
        if isinstance(result, ServiceError):
            get_logger().warning(
                "experiment not stopped", experiment=experiment_id, error=result.message
            )


def address_of(name: str, address: str) -> tuple[str, int]:
    """Split `host:port`.

    Raises:
        InvalidArgumentError: it is none.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidArgumentError(name, "must be host:port", address)
    return host, int(port)
