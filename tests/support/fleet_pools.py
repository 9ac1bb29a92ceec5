"""Pools of the fleet in a known state, for tests of its decisions."""

from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase, PlatformAgent
from svc_trial_runner.fleet.domain.decisions import FleetDecision, decide
from svc_trial_runner.fleet.domain.needs import PoolLimits, PoolNeed, PoolPlatform
from svc_trial_runner.fleet.domain.pool import Pool
from svc_trial_runner.fleet.domain.pool_events import (
    ActionStarted,
    AgentsLaunched,
    AgentsListed,
    LaunchAgents,
    ListAgents,
    NeedChanged,
    OpenPlatform,
    PlatformOpened,
    PresenceReceived,
)

INSTALLATION = "0123abcd"
POOL = "exp-1"


def agent(number: int) -> AgentName:
    """Return the name of an agent of the pool."""
    return AgentName(INSTALLATION, POOL, number)


def need(
    waiting: int = 0,
    running: int = 0,
    *platforms: str,
    limits: PoolLimits | None = None,
    closed: bool = False,
    sequence: int = 1,
    slots: int | None = 1,
    concurrency: int = 8,
    draining: bool = False,
) -> PoolNeed:
    """Return a need of a pool on `slurm`, or on the named platforms."""
    options = {} if slots is None else {"slots": slots}
    return PoolNeed(
        POOL,
        waiting,
        running,
        concurrency=concurrency,
        platforms=tuple(PoolPlatform(one, options) for one in platforms or ("slurm",)),
        limits=limits or PoolLimits(),
        closed=closed,
        draining=draining,
        log_sequence=sequence,
    )


def opened_pool(wanted: PoolNeed, capacity: int | None = None, now_s: float = 0.0) -> Pool:
    """Return a pool whose platforms are open and have no agent."""
    pool = Pool(INSTALLATION, POOL)
    pool.apply(NeedChanged(wanted), now_s)
    for key in wanted.sections:
        pool.apply(ActionStarted(key, OpenPlatform()), now_s)
        pool.apply(PlatformOpened(key), now_s)
        list_agents(pool, key, capacity=capacity, now_s=now_s)
    return pool


def list_agents(
    pool: Pool,
    key: str,
    *agents: PlatformAgent,
    capacity: int | None = None,
    now_s: float = 0.0,
) -> None:
    """Let a platform list its agents."""
    pool.apply(ActionStarted(key, ListAgents()), now_s)
    pool.apply(AgentsListed(key, agents, capacity), now_s)


def launch(pool: Pool, now_s: float = 0.0) -> list[AgentName]:
    """Let all platforms launch what is decided; return the names."""
    names = []
    for key, action in decide(pool, now_s).actions.items():
        if isinstance(action, LaunchAgents):
            pool.apply(ActionStarted(key, action), now_s)
            pool.apply(AgentsLaunched(key), now_s)
            names += [planned.name for planned in action.agents]
    return names


def join(pool: Pool, *names: AgentName, trials: int = 0, now_s: float = 0.0) -> None:
    """Let agents run on their platforms and be heard from."""
    for key in pool.platforms:
        own = [record.name for record in pool.on_platform(key)]
        listed = [PlatformAgent(name, AgentPhase.RUNNING, "host") for name in own]
        capacity = pool.platforms[key].capacity
        list_agents(pool, key, *listed, capacity=capacity, now_s=now_s)
    for name in names:
        pool.apply(PresenceReceived(name, trials), now_s)


def launched_numbers(decision: FleetDecision) -> dict[str, list[int]]:
    """Return the numbers of the agents that each platform is to launch."""
    return {
        key: [planned.name.number for planned in action.agents]
        for key, action in decision.actions.items()
        if isinstance(action, LaunchAgents)
    }
