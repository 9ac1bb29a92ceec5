"""Composition root of the fleet: opens the bus, the platforms and the credentials of agents."""

from collections.abc import Mapping

from svc_common.access.security import Guard
from svc_common.clock import SystemClock
from svc_common.credential_channel import CredentialChannel
from svc_common.lifecycle import Service
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.permissions import FLEET
from svc_common.pool_secrets import PoolSecrets
from svc_common.storage.own_files import private_folder
from svc_common.telemetry.metrics import process_registry
from svc_common.telemetry.metrics_listener import serve_metrics
from svc_trial_runner.fleet.adapters.bundles.bundle_store import DirectoryBundleStore
from svc_trial_runner.fleet.adapters.credentials import NoCredentials, SupervisorCredentials
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.installation import installation_id
from svc_trial_runner.fleet.adapters.platform_registry import (
    InstalledPlatforms,
    PlatformDependencies,
)
from svc_trial_runner.fleet.pools.fleet import Fleet
from svc_trial_runner.fleet.pools.pool_controller import FleetDependencies
from svc_trial_runner.fleet.ports import CredentialStore, InstallationEndpoints
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
    fleet = Fleet(
        FleetDependencies(
            installation,
            bus,
            _platforms(settings, installation),
            _open_credentials(service, settings),
            SystemClock(),
        )
    )
    service.takes_work_if(lambda: bus.connected)
    service.add_consumer(fleet.aclose)
    service.tasks.start(fleet.run(), "fleet")
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


def _platforms(settings: Settings, installation: str) -> InstalledPlatforms:
    folder = settings.folder
    return InstalledPlatforms(
        PlatformDependencies(
            installation,
            InstallationEndpoints(settings.nats_url, settings.manager_grpc),
            DirectoryBundleStore(folder / "bundles", folder / "wheels"),
            PoolSecrets(settings.home),
            folder / "pools",
            NoFront(),
        )
    )


def _open_credentials(service: Service, settings: Settings) -> CredentialStore:
    if settings.credentials_fd is None:
        return NoCredentials()
    channel = CredentialChannel.inherited(settings.credentials_fd)
    service.adapters.callback(channel.close)
    return SupervisorCredentials(channel)
