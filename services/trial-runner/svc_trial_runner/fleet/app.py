"""Composition root of the fleet: opens the bus, the platforms and the credentials of agents."""

import resource
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from svc_common import environment
from svc_common.access.security import Guard
from svc_common.agent_users import AgentUsers
from svc_common.clock import SystemClock
from svc_common.credential_channel import CredentialChannel
from svc_common.lifecycle import Service
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_reload import BusReloader
from svc_common.messaging.nats_settings import ALPN_PROTOCOL as NATS_PROTOCOL
from svc_common.messaging.nats_settings import DEFAULT_PORT, NatsSettings
from svc_common.messaging.permissions import FLEET, RELOADER
from svc_common.metrics_listener import serve_metrics
from svc_common.own_files import private_folder
from svc_common.pool_secrets import PoolSecrets
from svc_common.telemetry.metrics import process_registry
from svc_trial_runner.adapters.process_reaper import raise_descriptor_limit
from svc_trial_runner.enrolment import ENROL_PROTOCOL
from svc_trial_runner.fleet.adapters.bundles.bundle_store import DirectoryBundleStore
from svc_trial_runner.fleet.adapters.credentials import (
    FolderCredentials,
    NoCredentials,
    SupervisorCredentials,
)
from svc_trial_runner.fleet.adapters.front.connection_limits import ConnectionLimits
from svc_trial_runner.fleet.adapters.front.enrolment_endpoint import EnrolmentEndpoint
from svc_trial_runner.fleet.adapters.front.listener import GRPC_PROTOCOL, Forward
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.front.relays import (
    Address,
    BusConnector,
    ManagerConnector,
    Relay,
)
from svc_trial_runner.fleet.adapters.front.tls_front import FrontSettings, TlsFront
from svc_trial_runner.fleet.adapters.installation import installation_id
from svc_trial_runner.fleet.adapters.joined.machines import DirectoryJoinedMachines
from svc_trial_runner.fleet.adapters.platform_registry import (
    InstalledPlatforms,
    PlatformDependencies,
)
from svc_trial_runner.fleet.pools.enrolments import EnrolmentDependencies, Enrolments
from svc_trial_runner.fleet.pools.fleet import Fleet
from svc_trial_runner.fleet.pools.front_publication import FrontPublication
from svc_trial_runner.fleet.pools.pool_controller import FleetDependencies
from svc_trial_runner.fleet.ports import CredentialStore, FrontRegistry, InstallationEndpoints
from svc_trial_runner.fleet.settings import Settings, read_settings


async def build(service: Service) -> Mapping[str, str]:
    """Compose and start the fleet from its settings; return its ready addresses."""
    settings = read_settings()
    private_folder(settings.folder)
    bus = await _open_bus(service, settings)
    registry = process_registry("fleet", settings.version)
    service.loop_watchdog.register(registry)
    guard = Guard.open(settings.security, settings.token, settings.home)
    service.adapters.callback(guard.close)
    facts = await serve_metrics(service, registry, guard)
    installation = installation_id(settings.home)
    endpoints = await _open_relays(service, settings)
    front = _front(service, settings, endpoints)
    credentials = await _open_credentials(service, settings)
    enrolments = Enrolments(
        EnrolmentDependencies(
            bus,
            credentials,
            front,
            DirectoryJoinedMachines(settings.folder / "pools"),
            SystemClock(),
            settings.version,
        )
    )
    front.add_route(ENROL_PROTOCOL, EnrolmentEndpoint(enrolments.enrol).serve)
    fleet = Fleet(
        FleetDependencies(
            installation,
            bus,
            _platforms(settings, installation, front, endpoints),
            credentials,
            SystemClock(),
        ),
        enrolments,
    )
    service.takes_work_if(lambda: bus.connected)
    service.add_consumer(fleet.aclose)
    service.tasks.start(fleet.run(), "fleet")
    publication = FrontPublication(bus.last_values, front, SystemClock())
    service.tasks.start(publication.run(), "state of the front")
    return {"installation": installation, **facts}


async def _open_bus(service: Service, settings: Settings) -> NatsBus:
    wanted = NatsSettings.confined(
        settings.nats_url,
        settings.security,
        token=settings.token,
        name=FLEET,
        replicas=settings.replicas,
    )
    return await service.adapters.enter_async_context(NatsBus(wanted))


async def _open_relays(service: Service, settings: Settings) -> InstallationEndpoints:
    """Return addresses of bus and manager that speak plain text on loopback, for forwards.

    In a deployment they are relays, which encrypt.
    """
    if settings.agent_users is None:
        return InstallationEndpoints(settings.nats_url, settings.manager_grpc)
    security = settings.security
    security.transport.check_url(environment.NNI_NATS_URL, settings.nats_url)
    host, port = environment.parse_address(environment.NNI_MANAGER_GRPC, settings.manager_grpc)
    tls = None if security.transport.ca is None else security.transport.client_context
    security.transport.check_peer(environment.NNI_MANAGER_GRPC, host, encrypted=tls is not None)
    connectors = (
        BusConnector(settings.nats_url, tls, tls_first=security.bus.tls_first),
        ManagerConnector(Address(host, port), tls),
    )
    found = []
    for connector in connectors:
        relay = Relay(connector)
        service.adapters.push_async_callback(relay.aclose)
        address = await relay.start()
        found.append(f"{address.host}:{address.port}")
    return InstallationEndpoints(f"nats://{found[0]}", found[1])


def _front(
    service: Service, settings: Settings, endpoints: InstallationEndpoints
) -> TlsFront | NoFront:
    """Build the TLS front, still closed; `NoFront` if the installation issues no credentials."""
    if settings.credentials_fd is None and settings.agent_users is None:
        return NoFront()
    raise_descriptor_limit()
    owner = settings.security.bus.owner
    bus = urlsplit(endpoints.bus)
    manager, _, port = endpoints.manager_grpc.rpartition(":")
    routes = {
        NATS_PROTOCOL: Forward(bus.hostname or "", bus.port or DEFAULT_PORT, owner).serve,
        GRPC_PROTOCOL: Forward(manager, int(port), owner).serve,
    }
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    front = TlsFront(
        FrontSettings(
            settings.folder / "front",
            settings.front_host,
            settings.front_port,
            published=settings.agent_users is not None,
        ),
        routes,
        ConnectionLimits.of_descriptors(descriptors),
        SystemClock(),
    )
    service.adapters.push_async_callback(front.aclose)
    return front


def _platforms(
    settings: Settings,
    installation: str,
    front: FrontRegistry,
    endpoints: InstallationEndpoints,
) -> InstalledPlatforms:
    folder = settings.folder
    return InstalledPlatforms(
        PlatformDependencies(
            installation,
            endpoints,
            DirectoryBundleStore(folder / "bundles", folder / "wheels"),
            PoolSecrets(settings.home),
            folder / "pools",
            front,
            deployed=settings.agent_users is not None,
        )
    )


async def _open_credentials(service: Service, settings: Settings) -> CredentialStore:
    if settings.agent_users is not None:
        bus = NatsSettings.confined(
            settings.nats_url, settings.security, token=settings.token, name=RELOADER
        )
        # The servers know the fleet's password under this name, too.
        reloader = BusReloader(replace(bus, user=RELOADER, owns_streams=False))
        await service.adapters.enter_async_context(reloader)
        users = AgentUsers(settings.agent_users)
        store = FolderCredentials(settings.agent_users, users, reloader.reload)
        await store.apply()  # files of a former run may be older than its users
        return store
    if settings.credentials_fd is None:
        return NoCredentials()
    channel = CredentialChannel.inherited(settings.credentials_fd)
    service.adapters.callback(channel.close)
    return SupervisorCredentials(channel)
