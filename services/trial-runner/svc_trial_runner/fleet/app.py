"""Composition root of the fleet: opens the bus, the platforms and the credentials of agents."""

import resource
from collections.abc import Mapping
from urllib.parse import urlsplit

from svc_common.access.security import Guard
from svc_common.clock import SystemClock
from svc_common.credential_channel import CredentialChannel
from svc_common.lifecycle import Service
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import ALPN_PROTOCOL as NATS_PROTOCOL
from svc_common.messaging.nats_settings import DEFAULT_PORT, NatsSettings
from svc_common.messaging.permissions import FLEET
from svc_common.metrics_listener import serve_metrics
from svc_common.pool_secrets import PoolSecrets
from svc_common.storage.own_files import private_folder
from svc_common.telemetry.metrics import process_registry
from svc_trial_runner.adapters.process_reaper import raise_descriptor_limit
from svc_trial_runner.enrolment import ENROL_PROTOCOL
from svc_trial_runner.fleet.adapters.bundles.bundle_store import DirectoryBundleStore
from svc_trial_runner.fleet.adapters.credentials import NoCredentials, SupervisorCredentials
from svc_trial_runner.fleet.adapters.front.connection_limits import ConnectionLimits
from svc_trial_runner.fleet.adapters.front.enrolment_endpoint import EnrolmentEndpoint
from svc_trial_runner.fleet.adapters.front.listener import GRPC_PROTOCOL, Forward
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
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
    front, credentials = _front(service, settings), _open_credentials(service, settings)
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
            _platforms(settings, installation, front),
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


def _front(service: Service, settings: Settings) -> TlsFront | NoFront:
    """Build the TLS front, still closed; `NoFront` if the installation issues no credentials."""
    if settings.credentials_fd is None:
        return NoFront()
    raise_descriptor_limit()
    owner = settings.security.bus.owner
    bus = urlsplit(settings.nats_url)
    manager, _, port = settings.manager_grpc.rpartition(":")
    routes = {
        NATS_PROTOCOL: Forward(bus.hostname or "", bus.port or DEFAULT_PORT, owner).serve,
        GRPC_PROTOCOL: Forward(manager, int(port), owner).serve,
    }
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    front = TlsFront(
        FrontSettings(settings.folder / "front", settings.front_host, settings.front_port),
        routes,
        ConnectionLimits.of_descriptors(descriptors),
        SystemClock(),
    )
    service.adapters.push_async_callback(front.aclose)
    return front


def _platforms(settings: Settings, installation: str, front: FrontRegistry) -> InstalledPlatforms:
    folder = settings.folder
    return InstalledPlatforms(
        PlatformDependencies(
            installation,
            InstallationEndpoints(settings.nats_url, settings.manager_grpc),
            DirectoryBundleStore(folder / "bundles", folder / "wheels"),
            PoolSecrets(settings.home),
            folder / "pools",
            front,
        )
    )


def _open_credentials(service: Service, settings: Settings) -> CredentialStore:
    if settings.credentials_fd is None:
        return NoCredentials()
    channel = CredentialChannel.inherited(settings.credentials_fd)
    service.adapters.callback(channel.close)
    return SupervisorCredentials(channel)
