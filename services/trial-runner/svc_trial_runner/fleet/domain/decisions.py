"""Decisions of the fleet: what a pool's platforms do next, which agents drain, when to look again.

`decide` only reads. The caller applies `ActionStarted` for each action and publishes the state
before it calls the platform, so that a fleet that is killed knows every name that it may have
launched.

Growth: agents are launched while trials that wait or run exceed the slots of the agents that can
take them, on the platforms in order of preference, each up to its capacity. A platform that is
busy keeps its share for a moment; one that fails keeps none, so the next one gets it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase
from svc_trial_runner.fleet.domain.needs import PoolNeed, PoolPlatform, default_slots
from svc_trial_runner.fleet.domain.pool import (
    AgentRecord,
    PlatformRecord,
    Pool,
    live,
)
from svc_trial_runner.fleet.domain.pool_events import (
    CleanPlatform,
    LaunchAgents,
    ListAgents,
    OpenPlatform,
    PlannedAgent,
    PlatformAction,
    TerminateAgents,
)

LIST_EVERY_S: Final = 30.0
"""Platforms are asked so often even if they notify no change."""
JOIN_LIMIT_S: Final = 120.0
"""An agent that has a machine and is not heard from within this time counts as failed."""
SILENT_AFTER_S: Final = 20.0
"""Four presences missed: the agent gets no share of the demand."""
LOST_AFTER_S: Final = 150.0
"""A silent agent has ended itself by now, after its own limit of 120 s."""
LEAVE_LIMIT_S: Final = 20.0
"""An idle agent that was asked to drain, or that said that it ends, is ended after this time."""
DRAIN_EVERY_S: Final = 5.0
"""Orders to agents may be lost, so they are repeated."""
RESERVED_S: Final = 15.0
"""For so long a platform that is being opened keeps its share of the demand."""
QUEUE_PATIENCE_S: Final = 30.0
"""Agents that wait longer in a platform's queue do not keep other platforms from growing."""
LAUNCH_BATCH: Final = 100
"""Most agents of one launch."""
LAUNCH_STEPS: Final = (OpenPlatform, ListAgents, LaunchAgents)
"""Actions without which a platform gets no agents."""


@dataclass(frozen=True, slots=True)
class FleetDecision:
    """Decision on a pool: actions by platform, drains, lost agents, slots, next wake-up."""

    actions: Mapping[str, PlatformAction] = field(default_factory=dict)
    """At most one per platform, for platforms that have none in progress."""
    drains: tuple[AgentName, ...] = ()
    """Agents that are to take no more trials."""
    lost: tuple[tuple[AgentName, str], ...] = ()
    """Agents that are given up, with the reason."""
    slots: Mapping[AgentName, int] = field(default_factory=dict)
    """Agents that are to run another number of trials at once."""
    wake_s: float | None = None
    """When to decide again if nothing happens; None: only after an event."""


@dataclass(slots=True)
class Timers:
    """Present time, and the earliest later instant at which a rule may change its result."""

    now_s: float
    wake_s: float | None = None

    def due(self, at_s: float | None) -> bool:
        """Return whether an instant has come (None: yes); if not, record it as a time to wake."""
        if at_s is None or at_s <= self.now_s:
            return True
        self.wake_s = at_s if self.wake_s is None else min(self.wake_s, at_s)
        return False


def decide(pool: Pool, now_s: float) -> FleetDecision:
    """Return a pool's next actions, drains, losses and slots; empty before the first need."""
    need = pool.need
    if need is None:
        return FleetDecision()
    timers = Timers(now_s)
    if is_stopped(pool, need, timers):
        need = replace(need, draining=True)
    stops = need.closed or need.draining
    lost = tuple(_lost(pool, timers))
    drains = tuple(_drains(pool, need, timers))
    launches = {} if stops else _launches(pool, need, timers)
    slots = {} if stops else dict(_slots(pool, need, timers))
    actions: dict[str, PlatformAction] = {}
    for key, platform in pool.platforms.items():
        if platform.action is None:
            action = _action(pool, need, platform, launches.get(key), timers)
            if action is not None:
                actions[key] = action
    return FleetDecision(actions, drains, lost, slots, timers.wake_s)


def is_stopped(pool: Pool, need: PoolNeed, timers: Timers) -> bool:
    """Return whether a pool is drained, or has used up its limit of time or cost."""
    limit_s = need.limits.time_limit_s
    if need.draining or limit_s is None:
        return need.draining
    left_s = limit_s - pool.agent_s(timers.now_s)
    if left_s <= 0:
        return True
    counting = sum(record.counts_from_s is not None for record in pool.agents.values())
    return counting > 0 and timers.due(timers.now_s + left_s / counting)


def is_silent(pool: Pool, record: AgentRecord, now_s: float) -> bool:
    """Return whether an agent has stopped sending presence messages, though the bus is up."""
    return (
        pool.listening and record.heard_s is not None and now_s >= record.heard_s + SILENT_AFTER_S
    )


def _lost(pool: Pool, timers: Timers) -> Iterator[tuple[AgentName, str]]:
    """Yield agents to give up: no presence message since the start, or none for too long."""
    if not pool.listening:
        return
    for record in live(pool.agents.values()):
        if record.heard_s is not None:
            if timers.due(record.heard_s + LOST_AFTER_S):
                yield record.name, f"it was not heard from for {LOST_AFTER_S:g} s"
        elif record.started_s is not None and timers.due(record.started_s + JOIN_LIMIT_S):
            yield record.name, f"it did not reach the bus within {JOIN_LIMIT_S:g} s"


def _drains(pool: Pool, need: PoolNeed, timers: Timers) -> Iterator[AgentName]:
    """Yield agents to drain: idle, above the limit, or all of a closed pool; repeat orders."""
    staying = [record for record in live(pool.agents.values()) if not record.leaves]
    by_hand = [record for record in staying if _is_by_hand(need, record)]
    for record in live(pool.agents.values()):
        sent_s = record.drain_sent_s
        unconfirmed = sent_s is not None and not record.draining and record.left_s is None
        if unconfirmed and timers.due((sent_s or 0.0) + DRAIN_EVERY_S):
            yield record.name
    # A person ends those, unless the pool does.
    for record in by_hand:
        if need.closed or need.draining:
            yield record.name
    staying = [record for record in staying if record not in by_hand]
    limits = need.limits
    most = math.inf if limits.max_agents is None else limits.max_agents
    excess = len(staying) - most
    spare = len(staying) - limits.min_agents
    idle = [record for record in staying if record.idle_since_s is not None]
    # The longest idle ones first; of the others the youngest, which have done the least.
    idle.sort(key=lambda record: (record.idle_since_s or 0.0, record.name))
    busy = sorted(
        (one for one in staying if one.idle_since_s is None and one.heard_s is not None),
        key=lambda record: -record.name.number,
    )
    for record in [*idle, *busy]:
        platform = pool.platforms.get(record.platform)
        stops = need.closed or need.draining
        obsolete = stops or platform is None or platform.retired
        if obsolete or excess > 0 or (spare > 0 and _is_idle(record, need, timers)):
            excess, spare = excess - 1, spare - 1
            yield record.name


def _is_by_hand(need: PoolNeed, record: AgentRecord) -> bool:
    """Return whether a person has started an agent."""
    section = need.sections.get(record.platform)
    return section is not None and section.by_hand


def _is_idle(record: AgentRecord, need: PoolNeed, timers: Timers) -> bool:
    """Return whether an agent has had nothing to do for the idle time, and no trial waits."""
    if record.idle_since_s is None or need.waiting > 0:
        return False
    return timers.due(record.idle_since_s + need.limits.idle_s)


def _action(
    pool: Pool,
    need: PoolNeed,
    platform: PlatformRecord,
    launch: LaunchAgents | None,
    timers: Timers,
) -> PlatformAction | None:
    """Return the next action of one platform; None: there is none."""
    if need.closed or platform.retired:
        return _closing_action(pool, need, platform, timers)
    if not platform.opened:
        return OpenPlatform() if _may(platform, OpenPlatform, timers) else None
    ended = _to_terminate(pool, need, platform, timers)
    if ended and _may(platform, TerminateAgents, timers):
        return TerminateAgents(ended)
    if _should_list(pool, platform, timers) and _may(platform, ListAgents, timers):
        return ListAgents()
    return launch


def _closing_action(
    pool: Pool, need: PoolNeed, platform: PlatformRecord, timers: Timers
) -> PlatformAction | None:
    """Return the clean-up of a platform that the pool leaves; None: it is clean, or must wait."""
    if platform.cleaned or not (platform.used or pool.on_platform(platform.key)):
        return None
    # Trials end by the orders of the manager; their last reports are worth a wait.
    if any(_is_finishing(record, timers) for record in live(pool.on_platform(platform.key))):
        return None
    if not _may(platform, CleanPlatform, timers):
        return None
    if need.closed or not _has_twin(pool, platform):
        return CleanPlatform()
    return CleanPlatform(tuple(record.name for record in pool.on_platform(platform.key)))


def _has_twin(pool: Pool, platform: PlatformRecord) -> bool:
    """Return whether a section that stays may be of the same cluster: it has the same platform."""
    return any(
        other.kind == platform.kind and not other.retired
        for other in pool.platforms.values()
        if other is not platform
    )


def _is_finishing(record: AgentRecord, timers: Timers) -> bool:
    """Return whether an agent of a closed pool holds trials and has time to end them."""
    if record.trials == 0 or record.left_s is not None:
        return False
    return record.drain_sent_s is None or not timers.due(record.drain_sent_s + LEAVE_LIMIT_S)


def _may(platform: PlatformRecord, kind: type[PlatformAction], timers: Timers) -> bool:
    """Return whether an action may run now: no delay, no permanent failure to open or launch."""
    back_off = platform.back_offs.get(kind)
    if back_off is None:
        return True
    if back_off.permanent and kind in {OpenPlatform, LaunchAgents}:
        return False
    return timers.due(back_off.until_s)


def _should_list(pool: Pool, platform: PlatformRecord, timers: Timers) -> bool:
    if platform.listed_s is None or platform.changed:
        return True
    for record in live(pool.on_platform(platform.key)):
        missing_s = record.missing_s
        unlisted = record.phase is None and missing_s is not None
        if unlisted and platform.listed_s < (missing_s or 0.0) and timers.due(missing_s):
            return True
    return timers.due(platform.listed_s + LIST_EVERY_S)


def _to_terminate(
    pool: Pool, need: PoolNeed, platform: PlatformRecord, timers: Timers
) -> tuple[AgentName, ...]:
    """Return a platform's agents that have ended, overstayed, or wait without demand."""
    return tuple(
        record.name
        for record in pool.on_platform(platform.key)
        if record.ended
        or _has_overstayed(record, timers)
        or _is_needless(pool, need, record, timers)
    )


def _has_overstayed(record: AgentRecord, timers: Timers) -> bool:
    """Return whether an agent without trials has not ended in time after its drain or leave."""
    if record.left_s is not None:
        return timers.due(record.left_s + LEAVE_LIMIT_S)
    if record.drain_sent_s is None or record.idle_since_s is None or not record.draining:
        return False
    return timers.due(max(record.drain_sent_s, record.idle_since_s) + LEAVE_LIMIT_S)


def _is_needless(pool: Pool, need: PoolNeed, record: AgentRecord, timers: Timers) -> bool:
    """Return whether an agent that was never present waits for a machine in a drained or idle pool.

    An agent that has sent a presence waits for nothing, whatever its platform says: an actor of Ray
    whose node is busy looks like one that waits.
    """
    if record.heard_s is not None:
        return False
    # After a restart of the fleet its first presence is still to come.
    had_machine = record.counts_from_s is not None
    if had_machine and not timers.due(record.ordered_s + SILENT_AFTER_S):
        return False
    waits = record.phase is AgentPhase.PENDING or record.launched_s is None
    if waits and need.draining:
        return True
    if pool.no_demand_since_s is None or need.limits.min_agents > 0:
        return False
    return waits and timers.due(pool.no_demand_since_s + need.limits.idle_s)


def _launches(pool: Pool, need: PoolNeed, timers: Timers) -> dict[str, LaunchAgents]:
    """Plan new agents for the missing slots; return the launch of each ready platform."""
    missing = missing_slots(pool, need, timers)
    count, most = len(pool.agents), most_agents(need)
    launches: dict[str, LaunchAgents] = {}
    number = pool.last_number
    for key, platform in pool.platforms.items():
        if platform.retired or not _keeps_share(platform, timers):
            continue
        if _has_long_queue(pool, platform, timers):
            continue
        section = need.sections[key]
        slots = _slots_of(pool, need, section)
        room = room_of(pool, platform)
        agents = _unsettled(pool, need, platform)
        while count < most and room > 0 and len(agents) < LAUNCH_BATCH:
            if missing <= 0 and count >= need.limits.min_agents:
                break
            number += 1
            name = AgentName(pool.installation, pool.name, number)
            max_trials = None if section.reuses else 1
            agents.append(PlannedAgent(name, slots, max_trials, need.gpus_per_trial))
            missing, count, room = missing - slots, count + 1, room - 1
        if agents and _is_ready(platform):
            launches[key] = LaunchAgents(tuple(agents))
    return launches


def _slots_of(pool: Pool, need: PoolNeed, section: PoolPlatform) -> int:
    """Return how many trials a new agent of a platform runs at once."""
    if not section.reuses:
        return 1
    return section.slots or default_slots(need.concurrency, _machines(pool))


def _slots(pool: Pool, need: PoolNeed, timers: Timers) -> Iterator[tuple[AgentName, int]]:
    """Yield agents that are to run more trials at once, because more are allowed in all.

    Where the section has the number, running agents keep theirs: their jobs have resources for it.
    """
    sections = need.sections
    for record in live(pool.agents.values()):
        section = sections.get(record.platform)
        if section is None or section.has_own_slots or record.leaves or not record.follows_slots:
            continue
        slots = _slots_of(pool, need, section)
        sent = record.ordered_slots == slots
        if slots > record.slots and (not sent or timers.due(record.slots_sent_s + DRAIN_EVERY_S)):
            yield record.name, slots


def missing_slots(pool: Pool, need: PoolNeed, timers: Timers) -> float:
    """Return how many trials have no slot at present or ordered agents; negative: free slots."""
    missing: float = need.waiting + need.running
    for record in live(pool.agents.values()):
        if not record.leaves and _takes_demand(pool, record, timers):
            missing -= max(record.slots, record.trials)
        elif record.leaves or is_silent(pool, record, timers.now_s):
            missing -= record.trials  # they run there, or are counted as waiting once they are lost
    return missing


def most_agents(need: PoolNeed) -> float:
    """Return how many agents a pool may have."""
    return math.inf if need.limits.max_agents is None else need.limits.max_agents


def _takes_demand(pool: Pool, record: AgentRecord, timers: Timers) -> bool:
    """Return whether an agent counts as one that runs waiting trials, now or soon."""
    platform = pool.platforms.get(record.platform)
    if platform is None or platform.retired:
        return False
    if record.heard_s is not None:
        return not pool.listening or not timers.due(record.heard_s + SILENT_AFTER_S)
    launching = isinstance(platform.action, LaunchAgents)
    if record.launched_s is None and not launching and is_failing(platform, timers.now_s):
        return False
    return not _is_long_queued(pool, record, timers)


def _has_long_queue(pool: Pool, platform: PlatformRecord, timers: Timers) -> bool:
    records = live(pool.on_platform(platform.key))
    return any(one.heard_s is None and _is_long_queued(pool, one, timers) for one in records)


def _is_long_queued(pool: Pool, record: AgentRecord, timers: Timers) -> bool:
    """Return whether an agent waits in a queue for long, and another platform has room."""
    if record.phase is not AgentPhase.PENDING:
        return False
    if not _others_have_room(pool, record.platform, timers.now_s):
        return False
    return timers.due(record.ordered_s + QUEUE_PATIENCE_S)


def _others_have_room(pool: Pool, key: str, now_s: float) -> bool:
    return any(
        other.key != key
        and not other.retired
        and other.listed_s is not None
        and not is_failing(other, now_s)
        and room_of(pool, other) > 0
        for other in pool.platforms.values()
    )


def _keeps_share(platform: PlatformRecord, timers: Timers) -> bool:
    """Return whether slots are planned for a platform: it works, or was added lately."""
    if not _may(platform, LaunchAgents, timers) or not _may(platform, OpenPlatform, timers):
        return False
    if platform.listed_s is not None:
        return True
    if OpenPlatform in platform.back_offs or ListAgents in platform.back_offs:
        return False
    return not timers.due(platform.created_s + RESERVED_S)


def _is_ready(platform: PlatformRecord) -> bool:
    """Return whether a platform can launch now."""
    return platform.opened and platform.listed_s is not None and platform.action is None


def is_failing(platform: PlatformRecord, now_s: float) -> bool:
    """Return whether a platform launches nothing for now, because an operation of it failed."""
    return any(
        back_off.permanent or back_off.until_s > now_s
        for kind, back_off in platform.back_offs.items()
        if kind in LAUNCH_STEPS
    )


def room_of(pool: Pool, platform: PlatformRecord) -> float:
    """Return how many more agents a platform can have: infinite without capacity; may be < 0."""
    if platform.capacity is None:
        return math.inf
    return platform.capacity - len(pool.on_platform(platform.key))


def _machines(pool: Pool) -> int | None:
    """Return how many agents all platforms can have together; None: unknown, or no limit."""
    capacities = [
        platform.capacity if platform.listed_s is not None else 1
        for platform in pool.platforms.values()
        if not platform.retired
    ]
    known = [one for one in capacities if one is not None]
    return sum(known) if len(known) == len(capacities) else None


def _unsettled(pool: Pool, need: PoolNeed, platform: PlatformRecord) -> list[PlannedAgent]:
    """Return agents to launch again: no result, not listed; none if busy or without demand."""
    if platform.action is not None or need.waiting + need.running + need.limits.min_agents == 0:
        return []
    return [
        PlannedAgent(record.name, record.slots, record.max_trials, record.gpus_per_trial)
        for record in live(pool.on_platform(platform.key))
        if record.launched_s is None and not record.leaves
    ]
