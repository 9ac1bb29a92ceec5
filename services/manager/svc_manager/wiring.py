"""Puts the parts of the manager together, of whatever adapters it is given; nothing is started."""

from collections.abc import Mapping
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
from svc_manager.blobs.large_values import LargeValues
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
    Journals,
    Leases,
    Listeners,
    Peers,
    Presences,
    TrialIds,
    Views,
)
from svc_manager.settings import Settings
from svc_manager.telemetry.telemetry import Telemetry
from svc_manager.usecases.agents import AgentDirectory
from svc_manager.usecases.analyses import ConstraintChecker
from svc_manager.usecases.cluster_listing import ClusterListing
from svc_manager.usecases.deletions import Deletions, ExperimentRemover
from svc_manager.usecases.diagnosis import Diagnosis, Probe
from svc_manager.usecases.experiments import Experiments
from svc_manager.usecases.log_streams import LogStreams
from svc_manager.usecases.metric_cache import MetricCache
from svc_manager.usecases.opening import ActivationDependencies, Activations
from svc_manager.usecases.storage import BlobPolicy, BlobServices, build_blob_services
from svc_manager.usecases.trials import Surroundings, Trials


@dataclass(frozen=True, slots=True)
class Stores:
    """What the manager keeps beside the logs."""

    blobs: BlobStore
    views: Views
    presences: Presences | None = None
    """None: agents are known when they speak."""
    leases: Leases | None = None
    """None: there is no other manager."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a manager works with; everything is open."""

    settings: Settings
    bus: Bus
    stores: Stores
    listeners: Listeners
    """Where experiments get their ports."""
    checker: AlgorithmChecker
    """The dispatcher."""
    peers: Peers
    """The other managers."""
    leases: Leases
    """Those of the stores, or some that nobody else has."""
    clock: Clock
    ids: TrialIds
    journals: Journals
    folders: Folders
    watches: FileWatches
    patient_blobs: BlobStore
    """Those of the stores, with calls that wait for a store that is away. An effect follows from a
    fact and must come to pass; a client is told instead."""
    machine: str
    """Name of this machine, as agents that run on it call it."""
    me: ManagerId
    """Who this manager is to others."""
    analyst: Analyst | None = None
    """The dispatcher's mathematics; None: nobody checks points against constraints."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """What is tried when somebody asks what is wrong, beside bus and agents."""
    telemetry: Telemetry = field(default_factory=Telemetry)
    """Counts and traces what happens."""


@dataclass(frozen=True, slots=True)
class Manager:
    """The manager without its faces."""

    ownership: Ownership
    registry: ActorRegistry
    agents: AgentMonitor
    experiments: Experiments
    trials: Trials
    runners: AgentDirectory
    diagnosis: Diagnosis
    keeping: BlobServices
    telemetry: Telemetry


@dataclass(frozen=True, slots=True)
class _Core:
    """What decides, and what all use cases share."""

    agents: AgentMonitor
    summaries: Summaries
    large_values: LargeValues
    books: MetricCache
    keeping: BlobServices
    ownership: Ownership
    registry: ActorRegistry
    points: ConstraintChecker | None


def build_manager(around: Around) -> Manager:
    """Put the parts together."""
    core = _core(around)
    surroundings = Surroundings(core.agents, around.clock)
    return Manager(
        core.ownership,
        core.registry,
        core.agents,
        _experiments(around, core),
        Trials(core.registry, core.large_values, core.books, surroundings, core.points),
        AgentDirectory(core.agents, around.bus.signals),
        Diagnosis(around.bus, core.agents, around.probes, around.settings.version),
        core.keeping,
        around.telemetry,
    )


def _core(around: Around) -> _Core:
    settings, bus, stores, clock = around.settings, around.bus, around.stores, around.clock
    agents = AgentMonitor(bus, clock)
    summaries = Summaries(stores.views, stores.blobs, around.telemetry.instruments.views)
    rules = BlobPolicy(settings.quota, settings.blob_grace, settings.bytes_travel)

    def found() -> list[Experiment]:
        return [actor.experiment for actor in registry.actors()]

    keeping = build_blob_services(stores.blobs, bus.events, clock, rules, found)
    outside = ActorDependencies(
        bus,
        clock,
        around.ids,
        around.listeners,
        agents,
        summaries,
        LargeValues(around.patient_blobs),
        bytes_travel=settings.bytes_travel,
        telemetry=around.telemetry,
        on_end=keeping.collection.want,
    )
    shared = stores.leases is not None
    ownership = Ownership(around.leases, around.me, clock, bus.signals, shared=shared)
    registry = ActorRegistry(outside, around.journals, ownership)
    around.telemetry.instruments.register_gauges(found, agents)
    large_values = LargeValues(stores.blobs)
    points = None if around.analyst is None else ConstraintChecker(large_values, around.analyst)
    books = MetricCache(bus.events)
    return _Core(agents, summaries, large_values, books, keeping, ownership, registry, points)


def _experiments(around: Around, core: _Core) -> Experiments:
    return Experiments(
        core.registry,
        _openings(around, core),
        core.large_values,
        around.checker,
        core.books,
        _log_feeds(around, core.agents),
        _deletions(around, core),
        ClusterListing(
            core.registry, core.ownership, around.peers, core.summaries, around.bus.events
        ),
        core.points,
    )


def _openings(around: Around, core: _Core) -> Activations:
    ports = ActivationDependencies(
        around.bus.events,
        around.journals,
        around.folders,
        around.listeners,
        around.checker,
        around.ids,
        around.clock,
    )
    return Activations(
        core.registry,
        ports,
        core.large_values,
        around.settings.default_root,
        around.settings.version,
        environment.for_user_code(),
    )


def _deletions(around: Around, core: _Core) -> Deletions:
    deletion = ExperimentRemover(
        around.bus,
        around.folders,
        core.summaries,
        core.keeping.collection.want,
        around.settings.home.absolute() / ANNOTATED_CODE_FOLDER,
    )
    tombstones = Tombstones(around.stores.blobs)
    return Deletions(core.registry, around.bus.events, deletion, tombstones, core.books)


def _log_feeds(around: Around, agents: AgentMonitor) -> LogStreams:
    return LogStreams(
        around.watches,
        around.bus.log_lines,
        lambda runner_id: agents.is_on(runner_id, around.machine),
        TrialOutputs(around.stores.blobs),
    )
