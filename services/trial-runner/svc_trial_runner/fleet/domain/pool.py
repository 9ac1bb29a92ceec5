"""State of one pool: fold of its need, platforms' lists and results, and presence messages.

All times are seconds of one monotonic clock, passed in. `apply` never fails: events may be late,
repeated, or name agents that are gone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
)
from svc_trial_runner.fleet.domain.needs import PoolNeed
from svc_trial_runner.fleet.domain.pool_events import (
    ActionCompleted,
    ActionFailed,
    ActionStarted,
    AgentEnrolled,
    AgentsLaunched,
    AgentsListed,
    AgentsTerminated,
    CleanPlatform,
    DrainSent,
    LaunchAgents,
    ListAgents,
    ListeningChanged,
    NeedChanged,
    OpenPlatform,
    PlatformAction,
    PlatformChanged,
    PlatformCleaned,
    PlatformEvent,
    PlatformOpened,
    PoolEvent,
    PresenceReceived,
    SlotsSent,
    StateRestored,
    TerminateAgents,
)

BACK_OFF_FIRST_S: Final = 2.0
BACK_OFF_LIMIT_S: Final = 300.0
MISSING_AFTER_S: Final = 30.0
"""A launched agent that its platform does not list is gone after this time: queues of some
platforms list a job some seconds after they have accepted it."""
_ON_MACHINE: Final = frozenset({AgentPhase.STARTING, AgentPhase.RUNNING})
SHORT_RUN_S: Final = 30.0
"""An agent that ends sooner, without a notice, counts as a failed launch."""


@dataclass(slots=True)
class AgentRecord:
    """State of an agent that was ordered or found: launch, phase, presence, drain, end."""

    name: AgentName
    platform: str
    slots: int
    ordered_s: float
    max_trials: int | None = None
    gpus_per_trial: int | None = None
    launched_s: float | None = None
    """When the platform confirmed it; None: the outcome of the launch is unknown."""
    phase: AgentPhase | None = None
    """As listed last; None: not listed yet."""
    machine: str = ""
    reason: str = ""
    started_s: float | None = None
    """When its process was first known to run."""
    heard_s: float | None = None
    trials: int = 0
    idle_since_s: float | None = None
    """None: it holds trials or outputs to store, or was never heard from."""
    has_worked: bool = False
    draining: bool = False
    """It has confirmed that it takes no more trials."""
    drain_sent_s: float | None = None
    left_s: float | None = None
    """When it said that it ends."""
    ended: bool = False
    """Its process is over, or given up; it is still to be forgotten by the platform."""
    counts_from_s: float | None = None
    """From when its time counts: its first machine, or later where no fleet has watched it.

    None: it has no machine, or has ended.
    """
    earliest_s: float | None = None
    """From when its time may count at most, if an agent that the last fleet started is heard from
    again; None: not from before `counts_from_s`."""
    ordered_slots: int | None = None
    """Trials at once that it was ordered to run and has not confirmed; None: none are ordered."""
    slots_sent_s: float = 0.0
    """When this order was sent last."""
    follows_slots: bool = False
    """True if it reports its trials at once, and so can be ordered to run others."""

    @property
    def missing_s(self) -> float | None:
        """Instant from which the agent counts as gone if unlisted; None: launch unconfirmed."""
        return None if self.launched_s is None else self.launched_s + MISSING_AFTER_S

    @property
    def leaves(self) -> bool:
        """True if it takes no more trials."""
        return self.draining or self.drain_sent_s is not None or self.left_s is not None


@dataclass(frozen=True, slots=True)
class BackOff:
    """Failures in a row of one kind of action: number, end of the delay, last reason, remedy."""

    failures: int
    until_s: float
    reason: str
    """In the platform's words."""
    remedy: str
    permanent: bool
    """True: another try cannot succeed before the section changes."""


@dataclass(slots=True)
class PlatformRecord:
    """State of one platform of the pool: opened, listed, capacity, action, back-offs."""

    key: str
    created_s: float
    opened: bool = False
    used: bool = False
    """True if something of the pool may be on the platform."""
    capacity: int | None = None
    listed_s: float | None = None
    """Start of the last successful list; None: not listed since the start or the last failure."""
    changed: bool = False
    """True if the list is out of date."""
    action: PlatformAction | None = None
    action_s: float = 0.0
    outdated: bool = False
    """True: the action in progress uses an earlier section."""
    cleaned: bool = False
    retired: bool = False
    """True: no longer a platform of the pool."""
    kind: str = ""
    """Name of the platform, which several sections may share: `slurm`."""
    back_offs: dict[type[PlatformAction], BackOff] = field(default_factory=dict)
    """Failures in a row by the kind of the action."""

    def fail(
        self,
        kind: type[PlatformAction],
        now_s: float,
        reason: str,
        remedy: str = "",
        *,
        permanent: bool = False,
    ) -> None:
        """Count a failure of an action and delay its next try: doubled, or longest if permanent.

        A failure with an earlier section delays nothing: the present one may be right.
        """
        if self.outdated:
            return
        count = self.back_offs[kind].failures if kind in self.back_offs else 0
        delay_s = min(BACK_OFF_LIMIT_S, BACK_OFF_FIRST_S * 2.0 ** min(count, 20))
        self.back_offs[kind] = BackOff(
            count + 1,
            now_s + (BACK_OFF_LIMIT_S if permanent else delay_s),
            reason,
            remedy,
            permanent,
        )

    def finish(self) -> None:
        """End the action in progress."""
        self.action, self.outdated = None, False

    def succeed(self, kind: type[PlatformAction]) -> None:
        """Forget the failures of a kind of action, which has succeeded."""
        self.back_offs.pop(kind, None)

    def retry_s(self, kind: type[PlatformAction]) -> float | None:
        """Return when a kind of action may be tried again; None: it did not fail."""
        return self.back_offs[kind].until_s if kind in self.back_offs else None


@dataclass(slots=True)
class Pool:
    """State of one pool, changed in place by `apply`."""

    installation: str
    name: str
    need: PoolNeed | None = None
    agents: dict[AgentName, AgentRecord] = field(default_factory=dict)
    platforms: dict[str, PlatformRecord] = field(default_factory=dict)
    """By key, in the order of preference."""
    last_number: int = 0
    """Largest number of an agent that was ever seen."""
    listening: bool = True
    was_used: bool = False
    """True if an earlier process may have left something on the platforms."""
    no_demand_since_s: float | None = None
    """None: trials wait or run."""
    ended_agent_s: float = 0.0
    """Time of the agents that have ended, those of earlier processes included."""

    def apply(self, event: PoolEvent, now_s: float) -> None:
        """Fold an event into the state in place; ignore one of an unknown platform or agent."""
        match event:
            case NeedChanged():
                self._change_need(event.need, now_s)
            case StateRestored():
                self._restore(event, now_s)
            case PresenceReceived():
                self._hear(event, now_s)
            case DrainSent() | SlotsSent():
                self._remember_orders(event, now_s)
            case ListeningChanged():
                self._listen(now_s, listening=event.listening)
            case AgentEnrolled():
                self._enrol(event, now_s)
            case _:
                platform = self.platforms.get(event.platform)
                if platform is not None:
                    self._apply_to(platform, event, now_s)

    @property
    def cleaned(self) -> bool:
        """True if the pool is closed and nothing of it is left on its platforms."""
        if self.need is None or not self.need.closed or self.agents:
            return False
        return all(one.cleaned or not one.used for one in self.platforms.values())

    def agent_s(self, now_s: float) -> float:
        """Return the time of all agents together, from the first machine of each to its end."""
        return self.ended_agent_s + sum(
            max(0.0, now_s - record.counts_from_s)
            for record in self.agents.values()
            if record.counts_from_s is not None
        )

    def on_platform(self, key: str) -> list[AgentRecord]:
        """Return the agents of a platform."""
        return [record for record in self.agents.values() if record.platform == key]

    def _apply_to(self, platform: PlatformRecord, event: PlatformEvent, now_s: float) -> None:
        match event:
            case PlatformChanged():
                platform.changed = True
            case ActionStarted():
                self._begin(platform, event.action, now_s)
            case ActionFailed():
                platform.listed_s = None  # before the next launch it is asked again
                platform.fail(
                    type(event.action), now_s, event.reason, event.remedy, permanent=event.permanent
                )
                platform.finish()
            case _:
                self._complete(platform, event, now_s)

    def _remember_orders(self, event: DrainSent | SlotsSent, now_s: float) -> None:
        """Record orders that were sent to agents, with their time."""
        match event:
            case DrainSent():
                for name in self.agents.keys() & set(event.names):
                    self.agents[name].drain_sent_s = now_s
            case SlotsSent():
                for name in self.agents.keys() & event.slots.keys():
                    self.agents[name].ordered_slots = event.slots[name]
                    self.agents[name].slots_sent_s = now_s

    def _complete(self, platform: PlatformRecord, event: ActionCompleted, now_s: float) -> None:
        """Fold the result of a platform's current action, and end the action."""
        match event:
            case PlatformOpened():
                platform.opened, platform.used = not platform.outdated, True
                platform.succeed(OpenPlatform)
            case AgentsListed():
                self._list(platform, event, now_s)
                platform.succeed(ListAgents)
            case AgentsLaunched():
                self._settle(platform, event.failures, now_s)
            case AgentsTerminated():
                platform.succeed(TerminateAgents)
                if isinstance(platform.action, TerminateAgents):
                    for name in platform.action.names:
                        self._forget(name, now_s)
            case PlatformCleaned():
                platform.cleaned, platform.used = True, False
                platform.succeed(CleanPlatform)
                for record in self.on_platform(platform.key):
                    self._forget(record.name, now_s)
        platform.finish()

    def _forget(self, name: AgentName, now_s: float) -> None:
        record = self.agents.pop(name, None)
        if record is not None:
            self._stop_counting(record, now_s)

    def _stop_counting(self, record: AgentRecord, now_s: float) -> None:
        """Add the run time of an ending agent to the sum over ended agents."""
        if record.counts_from_s is not None:
            self.ended_agent_s += max(0.0, now_s - record.counts_from_s)
            record.counts_from_s = None

    def _change_need(self, need: PoolNeed, now_s: float) -> None:
        before = self.need
        if (
            before is not None
            and need.created_at_ns == before.created_at_ns
            and need.log_sequence < before.log_sequence
        ):
            return  # of a manager that another one has replaced
        old = {} if before is None else before.sections
        self.need = need
        sections = need.sections
        for key, section in sections.items():
            if key not in self.platforms:
                self.platforms[key] = PlatformRecord(key, now_s, used=self.was_used)
            platform = self.platforms[key]
            platform.kind = section.platform
            if old.get(key, section) != section or platform.retired:
                platform.opened, platform.retired, platform.created_s = False, False, now_s
                platform.outdated = platform.action is not None
                platform.back_offs.clear()
            if not need.closed:
                platform.cleaned = False
        for key, platform in self.platforms.items():
            platform.retired = key not in sections
        order = [*sections, *(key for key in self.platforms if key not in sections)]
        self.platforms = {key: self.platforms[key] for key in order}
        if need.waiting + need.running > 0:
            self.no_demand_since_s = None
        elif self.no_demand_since_s is None:
            self.no_demand_since_s = now_s

    def _restore(self, event: StateRestored, now_s: float) -> None:
        self.last_number = max(self.last_number, event.last_number)
        self.was_used = not event.cleaned
        self.ended_agent_s = max(self.ended_agent_s, event.ended_agent_s)
        for agent in event.agents:
            self._see(agent.name)
            record = AgentRecord(agent.name, agent.platform, agent.slots, now_s)
            record.launched_s = None if agent.launching else now_s
            record.counts_from_s = agent.counts_from_s
            record.earliest_s = agent.started_s
            self.agents[agent.name] = record

    def _begin(self, platform: PlatformRecord, action: PlatformAction, now_s: float) -> None:
        platform.action, platform.action_s = action, now_s
        if isinstance(action, ListAgents):
            platform.changed = False  # what changes from here on is not on the list
        if isinstance(action, LaunchAgents):
            for planned in action.agents:
                self._see(planned.name)
                self.agents[planned.name] = AgentRecord(
                    planned.name,
                    platform.key,
                    planned.slots,
                    now_s,
                    planned.max_trials,
                    planned.gpus_per_trial,
                )

    def _settle(
        self, platform: PlatformRecord, failures: Sequence[LaunchFailure], now_s: float
    ) -> None:
        """Confirm launched agents, forget those that were not started, and count the failure."""
        action = platform.action
        if not isinstance(action, LaunchAgents):
            return
        for failure in failures:
            self._forget(failure.name, now_s)
        for planned in action.agents:
            record = self.agents.get(planned.name)
            if record is not None:
                record.launched_s = now_s
        platform.changed = True
        if failures:
            first = failures[0]
            permanent = all(one.permanent for one in failures)
            none_started = len(failures) == len(action.agents)
            platform.fail(
                LaunchAgents,
                now_s,
                first.reason,
                first.remedy,
                permanent=permanent and none_started,
            )

    def _list(self, platform: PlatformRecord, event: AgentsListed, now_s: float) -> None:
        platform.capacity = event.capacity
        platform.listed_s = platform.action_s
        listed = {agent.name: agent for agent in event.agents if self._is_ours(agent.name)}
        for name, agent in listed.items():
            self._see(name)
            record = self.agents.get(name)
            if record is None:
                record = self.agents[name] = AgentRecord(name, platform.key, agent.slots, now_s)
            if record.platform != platform.key:
                # Sections of one cluster, or with one home, list each other's agents.
                if record.platform in self.platforms:
                    continue
                record.platform = platform.key  # its own section has left the pool
            self._change_phase(platform, record, agent, now_s)
        for record in self.on_platform(platform.key):
            missing_s = record.missing_s
            is_late = missing_s is not None and missing_s <= platform.action_s
            if record.name not in listed and not record.ended and is_late:
                self._end(platform, record, "the platform does not know it any more", now_s)

    def _change_phase(
        self, platform: PlatformRecord, record: AgentRecord, agent: PlatformAgent, now_s: float
    ) -> None:
        record.launched_s = now_s if record.launched_s is None else record.launched_s
        record.phase, record.reason = agent.phase, agent.reason
        record.machine = agent.machine or record.machine
        if agent.phase in _ON_MACHINE:
            _start_counting(record, now_s)
        match agent.phase:
            case AgentPhase.ENDED if not record.ended:
                self._end(platform, record, agent.reason, now_s)
            case AgentPhase.RUNNING if record.started_s is None:
                record.started_s = now_s
            case _:
                pass

    def _end(
        self, platform: PlatformRecord, record: AgentRecord, reason: str, now_s: float
    ) -> None:
        """Record the end of an agent; count a failed launch if it did no work."""
        record.ended, record.phase = True, AgentPhase.ENDED
        self._stop_counting(record, now_s)
        began_s = record.ordered_s if record.started_s is None else record.started_s
        short = record.heard_s is None or now_s - began_s < SHORT_RUN_S
        if short and not record.has_worked and not record.leaves:
            where = f" on {record.machine}" if record.machine else ""
            words = f"agent {record.name}{where} ended: {reason or 'no reason is known'}"
            platform.fail(LaunchAgents, now_s, words)

    def give_up(self, record: AgentRecord, reason: str, now_s: float) -> None:
        """Record a silent agent as ended; do nothing if its platform is unknown."""
        platform = self.platforms.get(record.platform)
        if platform is not None:
            self._end(platform, record, reason, now_s)

    def _hear(self, event: PresenceReceived, now_s: float) -> None:
        record = self.agents.get(event.name)
        if record is None:
            return
        platform = self.platforms.get(record.platform)
        if record.heard_s is None and platform is not None:
            platform.succeed(LaunchAgents)
        record.heard_s = now_s
        _start_counting(record, now_s)
        _count_unwatched_time(record, now_s - event.running_s)
        record.trials = event.trials
        record.follows_slots = event.slots is not None
        if event.slots is not None and event.slots == record.ordered_slots:
            record.slots, record.ordered_slots = event.slots, None
        record.has_worked |= event.trials > 0
        record.draining |= event.draining
        if event.trials > 0 or event.uploads > 0:
            record.idle_since_s = None
        elif record.idle_since_s is None:
            record.idle_since_s = now_s
        if event.leaving and record.left_s is None:
            record.left_s = now_s
            if platform is not None:
                platform.changed = True

    def _listen(self, now_s: float, *, listening: bool) -> None:
        self.listening = listening
        if listening:
            for record in self.agents.values():
                if record.heard_s is not None:
                    record.heard_s = now_s

    def _enrol(self, event: AgentEnrolled, now_s: float) -> None:
        """Add an agent that has joined by itself; end the earlier agent of its machine."""
        self._see(event.name)
        record = AgentRecord(event.name, event.platform, event.slots, now_s)
        record.launched_s = record.started_s = now_s
        record.phase, record.machine = AgentPhase.RUNNING, event.machine
        self.agents[event.name] = record
        before = self.agents.get(event.replaced) if event.replaced is not None else None
        if before is not None:
            before.left_s = before.left_s or now_s
            before.ended, before.phase = True, AgentPhase.ENDED
            before.reason = f"its machine has enrolled again, as {event.name}"

    def _is_ours(self, name: AgentName) -> bool:
        return (name.installation, name.pool) == (self.installation, self.name)

    def _see(self, name: AgentName) -> None:
        self.last_number = max(self.last_number, name.number)


def _start_counting(record: AgentRecord, now_s: float) -> None:
    """Start counting an agent's time now, unless it counts already or the agent has ended."""
    if record.counts_from_s is None and not record.ended:
        record.counts_from_s = now_s


def _count_unwatched_time(record: AgentRecord, started_s: float) -> None:
    """Count the time from the start of a live agent's process, also while no fleet ran.

    Without a fleet only some minutes count, since the clock of the day may have been set. The agent
    measures its time by another clock. That of its earlier processes, and of its machine before the
    first one, is still not counted.
    """
    if record.counts_from_s is not None and record.earliest_s is not None:
        record.counts_from_s = min(record.counts_from_s, max(record.earliest_s, started_s))


def live(records: Iterable[AgentRecord]) -> list[AgentRecord]:
    """Return the agents that have not ended."""
    return [record for record in records if not record.ended]
