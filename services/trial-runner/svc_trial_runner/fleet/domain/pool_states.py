"""Published state of a pool: its agents, and why it does not grow."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from nni_wire.pools import experiment_of_pool
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase
from svc_trial_runner.fleet.domain.decisions import (
    LAUNCH_STEPS,
    Timers,
    is_failing,
    is_silent,
    is_stopped,
    missing_slots,
    most_agents,
    room_of,
)
from svc_trial_runner.fleet.domain.needs import HOUR_S, PoolNeed
from svc_trial_runner.fleet.domain.pool import AgentRecord, PlatformRecord, Pool, live
from svc_trial_runner.fleet.domain.pool_events import (
    LaunchAgents,
    RestoredAgent,
    StateRestored,
)


class AgentStatus(Enum):
    """States of an agent for users: launching, pending, starting, running, silent, draining."""

    LAUNCHING = "launching"
    """The platform is asked for it."""
    PENDING = "pending"
    """In a queue of the platform."""
    STARTING = "starting"
    """It has a machine and was not heard from."""
    RUNNING = "running"
    SILENT = "silent"
    """It was heard from, and then no longer."""
    DRAINING = "draining"
    """It takes no more trials, or has ended."""


@dataclass(frozen=True, slots=True)
class PoolAgent:
    """Agent in a pool's published state: platform, status, slots, machine, reason, times."""

    name: AgentName
    platform: str
    """Key of the platform."""
    status: AgentStatus
    slots: int
    ordered_s: float
    """When it was ordered."""
    machine: str = ""
    reason: str = ""
    """In the platform's words; empty: none."""
    counts_from_s: float | None = None
    """From when its time counts; None: it has no machine, or has ended."""


@dataclass(frozen=True, slots=True)
class PoolState:
    """Published state of a pool: agents, counters, and why it does not grow."""

    pool: str
    agents: tuple[PoolAgent, ...] = ()
    reason: str = ""
    """Why the pool does not grow although trials wait; empty: it grows, or none waits."""
    remedy: str = ""
    next_launch_s: float | None = None
    """The next launch after failures; None: none is delayed."""
    cleaned: bool = False
    """True: nothing of the pool is left on its platforms."""
    log_sequence: int = 0
    """Of the need that this answers."""
    last_number: int = 0
    """Largest number of an agent that was ever used."""
    ended_agent_s: float = 0.0
    """Time of the agents that have ended."""

    def restored(self) -> StateRestored:
        """Return the event by which a new process of the fleet takes this state over."""
        agents = tuple(
            RestoredAgent(
                one.name,
                one.platform,
                one.slots,
                one.status is AgentStatus.LAUNCHING,
                one.counts_from_s,
            )
            for one in self.agents
        )
        return StateRestored(
            agents, self.last_number, self.cleaned, self.log_sequence, self.ended_agent_s
        )


def pool_state(pool: Pool, now_s: float) -> PoolState:
    """Return a pool's state to publish, with the reasons why waiting trials get no agent."""
    need = pool.need
    if need is None:
        return PoolState(pool.name, last_number=pool.last_number, ended_agent_s=pool.ended_agent_s)
    blocked = list(_obstacles(pool, need, now_s)) if need.waiting > 0 and not need.closed else []
    delayed = [one for one in _failing(pool, now_s) if not one.permanent]
    return PoolState(
        pool.name,
        tuple(_agent(pool, record, now_s) for _, record in sorted(pool.agents.items())),
        reason="; ".join(reason for reason, _ in blocked),
        remedy="; ".join(dict.fromkeys(remedy for _, remedy in blocked if remedy)),
        next_launch_s=min((one.until_s for one in delayed), default=None) if blocked else None,
        cleaned=pool.cleaned,
        log_sequence=need.log_sequence,
        last_number=pool.last_number,
        ended_agent_s=pool.ended_agent_s,
    )


def _agent(pool: Pool, record: AgentRecord, now_s: float) -> PoolAgent:
    return PoolAgent(
        record.name,
        record.platform,
        _status(pool, record, now_s),
        record.slots,
        record.ordered_s,
        record.machine,
        record.reason,
        record.counts_from_s,
    )


def _status(pool: Pool, record: AgentRecord, now_s: float) -> AgentStatus:
    if record.ended or record.leaves:
        return AgentStatus.DRAINING
    if is_silent(pool, record, now_s):
        return AgentStatus.SILENT
    if record.heard_s is not None:
        return AgentStatus.RUNNING
    if record.launched_s is None:
        return AgentStatus.LAUNCHING
    return AgentStatus.PENDING if record.phase is AgentPhase.PENDING else AgentStatus.STARTING


def _failing(pool: Pool, now_s: float) -> Iterator["_Failure"]:
    """Yield the last failure of each platform that launches nothing for now."""
    for platform in pool.platforms.values():
        if not platform.retired and is_failing(platform, now_s):
            for kind in LAUNCH_STEPS:
                back_off = platform.back_offs.get(kind)
                if back_off is not None:
                    yield _Failure(
                        f"{platform.key}: {back_off.reason}",
                        back_off.remedy,
                        back_off.until_s,
                        permanent=back_off.permanent,
                    )
                    break


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    remedy: str
    until_s: float
    permanent: bool


def _obstacles(pool: Pool, need: PoolNeed, now_s: float) -> Iterator[tuple[str, str]]:
    """Yield reason and remedy of all that keeps waiting trials from getting an agent."""
    if not need.platforms:
        yield "the pool has no platforms", ""
    stop = _stop(pool, need, now_s)
    if stop is not None:
        yield stop
        return
    is_missing = missing_slots(pool, need, Timers(now_s)) > 0
    if is_missing or not any(record.heard_s is not None for record in live(pool.agents.values())):
        for failure in _failing(pool, now_s):
            yield failure.reason, failure.remedy
    yield from _queues(pool)
    if is_missing and len(pool.agents) >= most_agents(need):
        reason = f"the pool has its limit of {_agents(need.limits.max_agents)} (maxAgents)"
        yield reason, _raise(need, "--max-agents NUMBER")
    elif is_missing:
        for platform in pool.platforms.values():
            if _is_full(pool, platform, now_s):
                yield _fullness(need, platform)


def _fullness(need: PoolNeed, platform: PlatformRecord) -> tuple[str, str]:
    """Return as text why a full platform can have no more agents, and the remedy."""
    section = need.sections.get(platform.key)
    by_hand = section is not None and section.by_hand
    remedy = "set its slots higher, or add another platform"
    if by_hand:
        remedy = "bring another machine: nnictl runner invite"
    if not platform.capacity:
        return f"{platform.key}: it has no agent and can start none now", remedy
    have = f"it can have {_agents(platform.capacity)}, and all slots are taken"
    return f"{platform.key}: {have}", remedy


def _agents(count: int | None) -> str:
    return "1 agent" if count == 1 else f"{count} agents"


def _stop(pool: Pool, need: PoolNeed, now_s: float) -> tuple[str, str] | None:
    """Return why the pool launches nothing at all, and what to do; None: it may launch."""
    if need.draining:
        return (
            "the pool is drained",
            f"let it take trials again: nnictl pool drain {need.pool} --undo",
        )
    if not is_stopped(pool, need, Timers(now_s)):
        return None
    limits = need.limits
    hours = pool.agent_s(now_s) / HOUR_S
    price = limits.cost_per_agent_hour
    words, option = [], "--max-cost COST"
    if limits.max_agent_s is not None and pool.agent_s(now_s) >= limits.max_agent_s:
        allowed = limits.max_agent_s / HOUR_S
        words.append(f"{hours:.3g} of {allowed:.3g} agent-hours (maxAgentTime)")
        option = "--max-agent-time TIME"
    if limits.max_cost is not None and price:
        words.append(f"{hours * price:.3g} of the cost of {limits.max_cost:.3g} (maxCost)")
    return f"the pool has used {' and '.join(words)}", _raise(need, option)


def _raise(need: PoolNeed, option: str) -> str:
    """Return the command that raises a limit of a pool.

    Args:
        need: of the pool.
        option: of the command for the pool of one experiment.
    """
    experiment_id = experiment_of_pool(need.pool)
    if experiment_id is None:
        return f"raise the limit in its file, then nnictl pool update {need.pool} FILE"
    return f"raise the limit: nnictl update agents {experiment_id} {option}"


def _is_full(pool: Pool, platform: PlatformRecord, now_s: float) -> bool:
    usable = not platform.retired and platform.listed_s is not None
    launching = isinstance(platform.action, LaunchAgents)
    return (
        usable
        and not launching
        and not is_failing(platform, now_s)
        and room_of(pool, platform) <= 0
    )


def _queues(pool: Pool) -> Iterator[tuple[str, str]]:
    """Yield how many agents of each platform are queued, with the platform's reasons."""
    for key in pool.platforms:
        pending = [one for one in live(pool.on_platform(key)) if one.phase is AgentPhase.PENDING]
        words = dict.fromkeys(record.reason for record in pending if record.reason)
        if pending:
            why = f": {', '.join(words)}" if words else ""
            yield f"{key}: {len(pending)} of its agents are in the queue{why}", ""
