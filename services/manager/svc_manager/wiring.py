"""Puts the parts of the manager together, of whatever adapters it is given; nothing is started."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nni_wire.folders import ANNOTATED_CODE_FOLDER
from svc_common import environment
from svc_common.clock import Clock
from svc_common.messaging.ports import Bus
from svc_common.storage.ports import BlobStore
from svc_manager.actors.experiment_actor import Outside
from svc_manager.actors.leasing import Ownership
from svc_manager.actors.registry import Roster
from svc_manager.agents.liveness import AgentWatch
from svc_manager.blobs.large_values import BigValues
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
from svc_manager.telemetry.telemetry import Witness
from svc_manager.usecases.agents import Runners
from svc_manager.usecases.analyses import Points
from svc_manager.usecases.cluster_listing import Everywhere
from svc_manager.usecases.deletions import Deletion, Deletions
from svc_manager.usecases.diagnosis import Diagnosis, Probe
from svc_manager.usecases.experiments import Experiments
from svc_manager.usecases.log_streams import LogFeeds
from svc_manager.usecases.metric_cache import MetricBooks
from svc_manager.usecases.opening import OpeningPorts, Openings
from svc_manager.usecases.storage import ByteKeeping, ByteRules, keep_bytes
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
    witness: Witness = field(default_factory=Witness)
    """Counts and traces what happens."""


@dataclass(frozen=True, slots=True)
class Manager:
    """The manager without its faces."""

    ownership: Ownership
    roster: Roster
    agents: AgentWatch
    experiments: Experiments
    trials: Trials
    runners: Runners
    diagnosis: Diagnosis
    keeping: ByteKeeping
    witness: Witness


@dataclass(frozen=True, slots=True)
class _Core:
    """What decides, and what all use cases share."""

    agents: AgentWatch
    summaries: Summaries
    big_values: BigValues
    books: MetricBooks
    keeping: ByteKeeping
    ownership: Ownership
    roster: Roster
    points: Points | None


def put_together(around: Around) -> Manager:
    """Put the parts together."""
    core = _core(around)
    surroundings = Surroundings(core.agents, around.clock)
    return Manager(
        core.ownership,
        core.roster,
        core.agents,
        _experiments(around, core),
        Trials(core.roster, core.big_values, core.books, surroundings, core.points),
        Runners(core.agents, around.bus.signals),
        Diagnosis(around.bus, core.agents, around.probes, around.settings.version),
        core.keeping,
        around.witness,
    )


def _core(around: Around) -> _Core:
    settings, bus, stores, clock = around.settings, around.bus, around.stores, around.clock
    agents = AgentWatch(bus, clock)
    summaries = Summaries(stores.views, stores.blobs, around.witness.instruments.views)
    rules = ByteRules(settings.quota, settings.blob_grace, settings.bytes_travel)

    def found() -> list[Experiment]:
        return [actor.experiment for actor in roster.found()]

    keeping = keep_bytes(stores.blobs, bus.events, clock, rules, found)
    outside = Outside(
        bus,
        clock,
        around.ids,
        around.listeners,
        agents,
        summaries,
        BigValues(around.patient_blobs),
        bytes_travel=settings.bytes_travel,
        witness=around.witness,
        on_end=keeping.collection.want,
    )
    shared = stores.leases is not None
    ownership = Ownership(around.leases, around.me, clock, bus.signals, shared=shared)
    roster = Roster(outside, around.journals, ownership)
    around.witness.instruments.look_at(found, agents)
    big_values = BigValues(stores.blobs)
    points = None if around.analyst is None else Points(big_values, around.analyst)
    books = MetricBooks(bus.events)
    return _Core(agents, summaries, big_values, books, keeping, ownership, roster, points)


def _experiments(around: Around, core: _Core) -> Experiments:
    return Experiments(
        core.roster,
        _openings(around, core),
        core.big_values,
        around.checker,
        core.books,
        _log_feeds(around, core.agents),
        _deletions(around, core),
        Everywhere(core.roster, core.ownership, around.peers, core.summaries, around.bus.events),
        core.points,
    )


def _openings(around: Around, core: _Core) -> Openings:
    ports = OpeningPorts(
        around.bus.events,
        around.journals,
        around.folders,
        around.listeners,
        around.checker,
        around.ids,
        around.clock,
    )
    return Openings(
        core.roster,
        ports,
        core.big_values,
        around.settings.default_root,
        around.settings.version,
        environment.for_user_code(),
    )


def _deletions(around: Around, core: _Core) -> Deletions:
    deletion = Deletion(
        around.bus,
        around.folders,
        core.summaries,
        core.keeping.collection.want,
        around.settings.home.absolute() / ANNOTATED_CODE_FOLDER,
    )
    tombstones = Tombstones(around.stores.blobs)
    return Deletions(core.roster, around.bus.events, deletion, tombstones, core.books)


def _log_feeds(around: Around, agents: AgentWatch) -> LogFeeds:
    return LogFeeds(
        around.watches,
        around.bus.log_lines,
        lambda runner_id: agents.is_on(runner_id, around.machine),
        TrialOutputs(around.stores.blobs),
    )
