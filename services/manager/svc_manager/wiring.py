"""Wiring of the manager's components from any set of adapters; nothing is started."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nni_wire.folders import ANNOTATED_CODE_FOLDER
from svc_common import environment
from svc_common.clock import Clock
from svc_common.messaging.ports import Bus
from svc_common.storage.ports import BlobStore
from svc_manager.actors.experiment_actor import ActorDependencies
from svc_manager.actors.leasing import Ownership
from svc_manager.actors.registry import ActorRegistry
from svc_manager.agents.liveness import AgentMonitor
from svc_manager.agents.pool_states import PoolStates
from svc_manager.blobs.large_values import LargeValues
from svc_manager.blobs.shared_storages import SHARED_STORAGE_FOLDER, SharedStorages
from svc_manager.blobs.trial_outputs import TrialOutputs
from svc_manager.domain.lease import ManagerId
from svc_manager.domain.state import Experiment
from svc_manager.event_log.summaries import Summaries
from svc_manager.event_log.tombstones import Tombstones
from svc_manager.ports import (
    AlgorithmChecker,
    Analyst,
    FileWatches,
    Folders,
    IdSource,
    JobChecker,
    Journals,
    Leases,
    Listeners,
    Peers,
    PlatformChecker,
    Presences,
    SecretStore,
    Views,
)
from svc_manager.settings import Settings
from svc_manager.telemetry.telemetry import Telemetry
from svc_manager.usecases.activation import ActivationDependencies, Activations
from svc_manager.usecases.agents import AgentDirectory
from svc_manager.usecases.analyses import ConstraintChecker
from svc_manager.usecases.cluster_listing import ClusterListing
from svc_manager.usecases.config_checks import PLATFORMS
from svc_manager.usecases.deletions import Deletions, ExperimentRemover
from svc_manager.usecases.diagnosis import Diagnosis, Probe
from svc_manager.usecases.experiments import Experiments
from svc_manager.usecases.folder_admission import FolderAdmission
from svc_manager.usecases.folder_disposal import FolderDisposal
from svc_manager.usecases.invitations import Invitations
from svc_manager.usecases.log_streams import LogStreams
from svc_manager.usecases.metric_cache import MetricCache
from svc_manager.usecases.platform_checks import FleetPlatformChecker, NoPlatformChecker
from svc_manager.usecases.pool_removal import PoolRemover
from svc_manager.usecases.pools import Pools
from svc_manager.usecases.reruns import Reruns
from svc_manager.usecases.shared_studies import SharedStudies
from svc_manager.usecases.storage import BlobPolicy, BlobServices, build_blob_services
from svc_manager.usecases.trials import Trials


@dataclass(frozen=True, slots=True)
class Stores:
    """Stores of an installation: blobs, experiment views, agents' presence messages, leases."""

    blobs: BlobStore
    views: Views
    presences: Presences | None = None
    """None: agents are known from their next presence."""
    leases: Leases | None = None
    """None: this is the only manager."""


@dataclass(frozen=True, slots=True)
class ManagerDependencies:
    """Settings, bus, stores and other adapters from which a manager is built."""

    settings: Settings
    bus: Bus
    stores: Stores
    listeners: Listeners
    """Web servers of experiments with a port."""
    checker: AlgorithmChecker
    """Validates algorithms."""
    jobs: JobChecker
    """Validates compression jobs and explorations."""
    peers: Peers
    """The other managers."""
    leases: Leases
    """Those of the stores, or private ones."""
    clock: Clock
    ids: IdSource
    journals: Journals
    folders: Folders
    watches: FileWatches
    patient_blobs: BlobStore
    """Blobs of the stores, with calls that wait while the store is away: an effect must happen once
    its event is stored, while a client gets the error."""
    machine: str
    """Name of this machine, as its agents report it."""
    secrets: SecretStore
    """Secret values of platforms."""
    me: ManagerId
    """Identity of this manager."""
    analyst: Analyst | None = None
    """Computes analyses; None: constraints are not checked."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """Probes of the diagnosis, beside bus and agents."""
    telemetry: Telemetry = field(default_factory=Telemetry)
    """Metrics and traces."""
    platforms: Collection[str] = PLATFORMS
    """Platforms that experiments may name."""
    has_fleet: bool = False
    """True if a fleet answers requests to check platforms, started when it is needed."""


@dataclass(frozen=True, slots=True)
class Manager:
    """Components of a manager that its gRPC and HTTP servers use, built but not started."""

    ownership: Ownership
    registry: ActorRegistry
    agents: AgentMonitor
    pools: PoolStates
    experiments: Experiments
    trials: Trials
    shared_studies: SharedStudies
    agent_directory: AgentDirectory
    invitations: Invitations
    installation_pools: Pools
    diagnosis: Diagnosis
    blob_services: BlobServices
    telemetry: Telemetry
    deletions: Deletions


@dataclass(frozen=True, slots=True)
class _Core:
    """Registry, agents, stores and caches from which the manager's use cases are built."""

    agents: AgentMonitor
    pools: PoolStates
    summaries: Summaries
    large_values: LargeValues
    metrics: MetricCache
    blob_services: BlobServices
    ownership: Ownership
    registry: ActorRegistry
    constraints: ConstraintChecker | None


def build_manager(dependencies: ManagerDependencies) -> Manager:
    """Build registry, monitors and use cases of a manager from its adapters; nothing starts."""
    core = _core(dependencies)
    checker = _platform_checker(dependencies)
    shared_pools = _pools(dependencies, checker)
    deletions = _deletions(dependencies, core)
    trials = Trials(
        core.registry,
        core.large_values,
        core.metrics,
        core.agents,
        dependencies.clock,
        core.pools,
        core.constraints,
    )
    return Manager(
        core.ownership,
        core.registry,
        core.agents,
        core.pools,
        _experiments(
            dependencies, core, deletions, _activations(dependencies, core, shared_pools, checker)
        ),
        trials,
        SharedStudies(core.registry, core.large_values, trials, core.constraints),
        AgentDirectory(core.agents, core.pools, dependencies.bus.signals),
        Invitations(dependencies.bus.last_values, dependencies.clock),
        shared_pools,
        Diagnosis(
            dependencies.bus, core.agents, dependencies.probes, dependencies.settings.version
        ),
        core.blob_services,
        dependencies.telemetry,
        deletions,
    )


def _core(dependencies: ManagerDependencies) -> _Core:
    settings, bus, stores, clock = (
        dependencies.settings,
        dependencies.bus,
        dependencies.stores,
        dependencies.clock,
    )
    agents = AgentMonitor(bus, clock)
    pools = PoolStates(bus.last_values, agents.platform_ended)
    summaries = Summaries(stores.views, stores.blobs, dependencies.telemetry.instruments.views)
    policy = BlobPolicy(settings.quota, settings.blob_grace, settings.bytes_travel)

    def found() -> list[Experiment]:
        return [actor.experiment for actor in registry.actors()]

    blob_services = build_blob_services(
        stores.blobs,
        bus.events,
        clock,
        policy,
        found,
        lambda id_: registry.experiment(id_),  # noqa: PLW0108 - it is made below
    )
    actor_dependencies = _actor_dependencies(dependencies, agents, summaries, pools, blob_services)
    shared = stores.leases is not None
    ownership = Ownership(dependencies.leases, dependencies.me, clock, bus.signals, shared=shared)
    registry = ActorRegistry(actor_dependencies, dependencies.journals, ownership)
    dependencies.telemetry.instruments.register_gauges(found, agents)
    large_values = LargeValues(stores.blobs)
    metrics = MetricCache(bus.events)
    return _Core(
        agents,
        pools,
        summaries,
        large_values,
        metrics,
        blob_services,
        ownership,
        registry,
        _constraint_checker(large_values, dependencies.analyst),
    )


def _actor_dependencies(
    dependencies: ManagerDependencies,
    agents: AgentMonitor,
    summaries: Summaries,
    pools: PoolStates,
    blob_services: BlobServices,
) -> ActorDependencies:
    return ActorDependencies(
        dependencies.bus,
        dependencies.clock,
        dependencies.ids,
        dependencies.listeners,
        agents,
        summaries,
        LargeValues(dependencies.patient_blobs),
        bytes_travel=dependencies.settings.bytes_travel,
        telemetry=dependencies.telemetry,
        platform_wait=pools.wait,
        on_garbage=blob_services.collector.request,
    )


def _constraint_checker(values: LargeValues, analyst: Analyst | None) -> ConstraintChecker | None:
    return None if analyst is None else ConstraintChecker(values, analyst)


def _platform_checker(dependencies: ManagerDependencies) -> PlatformChecker:
    if not dependencies.has_fleet:
        return NoPlatformChecker()
    return FleetPlatformChecker(
        dependencies.bus.last_values,
        dependencies.secrets,
        dependencies.clock,
        dependencies.ids.experiment_id,
    )


def _pools(dependencies: ManagerDependencies, checker: PlatformChecker) -> Pools:
    bus = dependencies.bus
    return Pools(
        bus.last_values,
        bus.tasks,
        dependencies.secrets,
        checker,
        dependencies.clock,
        dependencies.platforms,
    )


def _experiments(
    dependencies: ManagerDependencies,
    core: _Core,
    deletions: Deletions,
    activations: Activations,
) -> Experiments:
    return Experiments(
        core.registry,
        activations,
        core.large_values,
        dependencies.checker,
        core.metrics,
        _log_streams(dependencies, core.agents),
        deletions,
        ClusterListing(
            core.registry,
            core.ownership,
            dependencies.peers,
            core.summaries,
            dependencies.bus.events,
        ),
        Reruns(dependencies.folders, dependencies.secrets, core.large_values),
        core.constraints,
    )


def _activations(
    dependencies: ManagerDependencies, core: _Core, pools: Pools, checker: PlatformChecker
) -> Activations:
    ports = ActivationDependencies(
        dependencies.bus.events,
        dependencies.journals,
        dependencies.folders,
        dependencies.listeners,
        dependencies.checker,
        dependencies.jobs,
        dependencies.ids,
        dependencies.clock,
        dependencies.secrets,
        pools,
        checker,
        _shared_storages(dependencies),
    )
    return Activations(
        core.registry,
        ports,
        core.large_values,
        dependencies.settings.default_root,
        dependencies.settings.version,
        environment.for_user_code(),
        FolderAdmission(dependencies.settings.roots),
        dependencies.platforms,
    )


def _deletions(dependencies: ManagerDependencies, core: _Core) -> Deletions:
    blobs = dependencies.stores.blobs
    disposal = FolderDisposal(dependencies.folders, blobs, dependencies.machine)
    remover = ExperimentRemover(
        dependencies.bus,
        dependencies.folders,
        PoolRemover(dependencies.bus.last_values, dependencies.bus.tasks, dependencies.secrets),
        disposal,
        core.summaries,
        core.blob_services.collector.request,
        dependencies.settings.home.absolute() / ANNOTATED_CODE_FOLDER,
    )
    return Deletions(
        core.registry,
        dependencies.bus.events,
        remover,
        Tombstones(blobs),
        core.metrics,
        disposal,
        _shared_storages(dependencies),
    )


def _shared_storages(dependencies: ManagerDependencies) -> SharedStorages:
    folder = dependencies.settings.home.absolute() / SHARED_STORAGE_FOLDER
    return SharedStorages(folder, environment.for_user_code())


def _log_streams(dependencies: ManagerDependencies, agents: AgentMonitor) -> LogStreams:
    return LogStreams(
        dependencies.watches,
        dependencies.bus.log_lines,
        lambda runner_id: agents.is_on(runner_id, dependencies.machine),
        TrialOutputs(
            dependencies.stores.blobs, dependencies.folders, _shared_storages(dependencies)
        ),
        dependencies.folders,
    )
