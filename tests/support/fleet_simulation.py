"""Discrete simulation of one pool: the fleet's decisions, platforms, agents and trials.

Time is virtual. Platforms take a while for each action, may refuse or lose an answer, and the fleet
may be killed at any event: the next one has only what was published and what platforms list.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
)
from svc_trial_runner.fleet.domain.decisions import decide
from svc_trial_runner.fleet.domain.needs import PoolLimits, PoolNeed, PoolPlatform
from svc_trial_runner.fleet.domain.pool import Pool
from svc_trial_runner.fleet.domain.pool_events import (
    ActionFailed,
    ActionStarted,
    AgentsLaunched,
    AgentsListed,
    AgentsTerminated,
    CleanPlatform,
    DrainSent,
    LaunchAgents,
    ListAgents,
    NeedChanged,
    OpenPlatform,
    PlatformAction,
    PlatformChanged,
    PlatformCleaned,
    PlatformOpened,
    PoolEvent,
    PresenceReceived,
    TerminateAgents,
)
from svc_trial_runner.fleet.domain.pool_states import PoolState, pool_state

INSTALLATION = "0123abcd"
POOL = "exp-sim"
PRESENCE_EVERY_S = 5.0


@dataclass
class SimulatedAgent:
    """Agent on a platform: joins after a while, takes trials, drains."""

    name: AgentName
    slots: int
    max_trials: int | None
    phase: AgentPhase = AgentPhase.STARTING
    joined: bool = False
    draining: bool = False
    trials: int = 0
    done: int = 0


@dataclass
class SimulatedPlatform:
    """Platform with room for some agents."""

    capacity: int | None = None
    join_s: float = 1.0
    agents: dict[AgentName, SimulatedAgent] = field(default_factory=dict)
    failing: bool = False
    """Every action fails."""


@dataclass
class Faults:
    """Probabilities of bad events, per action or event."""

    lost_answer: float = 0.0
    """The platform does what it is asked, and the answer is an error."""
    refused: float = 0.0
    """The platform does nothing."""
    launch_failure: float = 0.0
    """Of one order."""
    agent_death: float = 0.0
    """At each presence."""
    kill: float = 0.0
    """The fleet is killed before an event."""


class FleetSimulation:
    """Simulation of one pool with trials of random length.

    Args:
        seed: of all random draws.
        platforms: by key; keys are also the names.
        limits: of the pool.
        concurrency: most trials that wait or run at once.
        faults: what goes wrong.
    """

    def __init__(
        self,
        seed: int,
        platforms: dict[str, SimulatedPlatform],
        limits: PoolLimits,
        *,
        concurrency: int,
        slots: int = 1,
        faults: Faults | None = None,
    ) -> None:
        self.random = Random(seed)
        self.platforms = platforms
        self.faults = faults or Faults()
        self.trial_s = 10.0
        self.queued = 0
        self.done = 0
        self.now_s = 0.0
        self.most = 0
        self.launches: Counter[AgentName] = Counter()
        self.agent_s = 0.0
        """Time of all agents on their platforms, from the launch of each to its end."""
        self._since: dict[AgentName, float] = {}
        self._order = itertools.count()
        self._events: list[tuple[float, int, int, Callable[[], None]]] = []
        self._generation = 0
        self._published: PoolState | None = None
        self._woken_s: float | None = None
        sections = tuple(PoolPlatform(key, {"slots": slots}) for key in platforms)
        self.need = PoolNeed(
            POOL, concurrency=concurrency, platforms=sections, limits=limits, log_sequence=1
        )
        self.pool = Pool(INSTALLATION, POOL)
        self._fold(NeedChanged(self.need))

    @property
    def count(self) -> int:
        """Number of agents that run or start."""
        return sum(
            1
            for platform in self.platforms.values()
            for agent in platform.agents.values()
            if agent.phase is not AgentPhase.ENDED
        )

    @property
    def state(self) -> PoolState:
        """State as it is published now."""
        return pool_state(self.pool, self.now_s)

    def submit(self, trials: int) -> None:
        """Add trials to the experiment."""
        self.queued += trials
        self._change_need()

    def close(self) -> None:
        """Close the pool; trials that are left are cancelled."""
        self.queued = 0
        self.need = replace(self.need, closed=True)
        self._change_need()

    def run(self, until: Callable[[], bool], limit_s: float) -> None:
        """Handle events until a condition holds; fail if it does not within a time."""
        end_s = self.now_s + limit_s
        self._decide()
        while not until():
            assert self._events, "nothing happens any more"
            at_s, _, generation, call = heapq.heappop(self._events)
            assert at_s <= end_s, f"not within {limit_s} s: {self.state}"
            self.now_s = max(self.now_s, at_s)
            if self.random.random() < self.faults.kill:
                self._kill()
            if generation in {0, self._generation + 1}:
                call()
            self._assign()
            self._decide()
            self.most = max(self.most, self.count)

    def _at(self, delay_s: float, call: Callable[[], None], *, of_fleet: bool = False) -> None:
        generation = self._generation + 1 if of_fleet else 0
        heapq.heappush(self._events, (self.now_s + delay_s, next(self._order), generation, call))

    def _kill(self) -> None:
        """End the fleet's process and start another one."""
        self._generation += 1
        self._woken_s = None
        self.pool = Pool(INSTALLATION, POOL)
        if self._published is not None:
            self._fold(self._published.restored())
        self._fold(NeedChanged(self.need))

    def _fold(self, event: PoolEvent) -> None:
        self.pool.apply(event, self.now_s)

    def _decide(self) -> None:
        decision = decide(self.pool, self.now_s)
        for name, reason in decision.lost:
            self.pool.give_up(self.pool.agents[name], reason, self.now_s)
        if decision.drains:
            self._fold(DrainSent(decision.drains))
            self._at(0.01, lambda: self._drain(decision.drains))
        for key, action in decision.actions.items():
            self._fold(ActionStarted(key, action))
        self._published = self.state
        for key, action in decision.actions.items():
            self._start(key, action)
        wake_s = decision.wake_s
        if wake_s is not None and (self._woken_s is None or wake_s < self._woken_s):
            self._woken_s = wake_s
            self._at(wake_s - self.now_s, self._wake, of_fleet=True)
        if decision.lost or decision.drains:
            self._decide()

    def _wake(self) -> None:
        self._woken_s = None

    def _start(self, key: str, action: PlatformAction) -> None:
        """Call a platform: the effect comes in half of the time, the answer at the end."""
        takes_s = self.random.uniform(0.05, 1.0)
        results: list[PoolEvent] = []
        refused = self.random.random() < self.faults.refused or self.platforms[key].failing
        if not refused:
            self._at(takes_s / 2, lambda: results.append(self._effect(key, action)))
        lost = refused or self.random.random() < self.faults.lost_answer

        def answer() -> None:
            self._fold(ActionFailed(key, action, "no answer") if lost else results[0])

        self._at(takes_s, answer, of_fleet=True)

    def _effect(self, key: str, action: PlatformAction) -> PoolEvent:
        platform = self.platforms[key]
        match action:
            case OpenPlatform():
                return PlatformOpened(key)
            case ListAgents():
                listed = tuple(
                    PlatformAgent(one.name, one.phase) for one in platform.agents.values()
                )
                return AgentsListed(key, listed, platform.capacity)
            case LaunchAgents():
                return AgentsLaunched(key, self._launch(platform, action))
            case TerminateAgents():
                for name in action.names:
                    self._end(key, platform.agents.pop(name, None))
                return AgentsTerminated(key)
            case CleanPlatform(agents=tuple(names)):
                for name in names:
                    self._end(key, platform.agents.pop(name, None))
                return PlatformCleaned(key)
            case CleanPlatform():
                for agent in platform.agents.values():
                    self._end(key, agent)
                platform.agents.clear()
                return PlatformCleaned(key)

    def _launch(
        self, platform: SimulatedPlatform, action: LaunchAgents
    ) -> tuple[LaunchFailure, ...]:
        failures = []
        for planned in action.agents:
            if planned.name in platform.agents:
                continue
            if self.random.random() < self.faults.launch_failure:
                failures.append(LaunchFailure(planned.name, "no machine"))
                continue
            self.launches[planned.name] += 1
            self._since[planned.name] = self.now_s
            agent = SimulatedAgent(planned.name, planned.slots, planned.max_trials)
            platform.agents[planned.name] = agent
            self._at(platform.join_s, lambda agent=agent: self._join(agent))  # type: ignore[misc]
        return tuple(failures)

    def _join(self, agent: SimulatedAgent) -> None:
        if agent.phase is AgentPhase.STARTING:
            agent.phase = AgentPhase.RUNNING
            agent.joined = True
            self._publish_presence(agent)

    def _publish_presence(self, agent: SimulatedAgent) -> None:
        """Publish the presence of an agent, now and every few seconds."""
        if agent.phase is AgentPhase.ENDED:
            return
        if self.random.random() < self.faults.agent_death:
            self._end(self._key_of(agent), agent)
            return
        self._notify(agent)
        self._at(PRESENCE_EVERY_S, lambda: self._publish_presence(agent))

    def _notify(self, agent: SimulatedAgent, *, leaving: bool = False) -> None:
        self._fold(PresenceReceived(agent.name, agent.trials, agent.draining, leaving))

    def _drain(self, names: tuple[AgentName, ...]) -> None:
        for platform in self.platforms.values():
            for agent in list(platform.agents.values()):
                if agent.name in names and agent.joined:
                    agent.draining = True
                    self._leave_if_done(agent)

    def _leave_if_done(self, agent: SimulatedAgent) -> None:
        is_over = agent.draining or agent.done == agent.max_trials
        if is_over and agent.trials == 0 and agent.phase is AgentPhase.RUNNING:
            self._notify(agent, leaving=True)
            self._end(self._key_of(agent), agent)

    def _end(self, key: str, agent: SimulatedAgent | None) -> None:
        """End an agent; its trials wait again."""
        if agent is None or agent.phase is AgentPhase.ENDED:
            return
        agent.phase = AgentPhase.ENDED
        self.agent_s += self.now_s - self._since[agent.name]
        if not self.need.closed:
            self.queued += agent.trials
        agent.trials = 0
        self._fold(PlatformChanged(key))
        self._change_need()

    def _assign(self) -> None:
        """Let agents take waiting trials."""
        waiting = min(self.queued, self.need.concurrency - self._running)
        for platform in self.platforms.values():
            for agent in platform.agents.values():
                while waiting > 0 and self._has_slot(agent):
                    waiting -= 1
                    self.queued -= 1
                    agent.trials += 1
                    agent.done += 1
                    length_s = self.random.uniform(0.5, 1.5) * self.trial_s
                    self._at(length_s, lambda agent=agent: self._finish(agent))  # type: ignore[misc]
                    self._notify(agent)
        self._change_need()

    @staticmethod
    def _has_slot(agent: SimulatedAgent) -> bool:
        free = agent.trials < agent.slots and agent.done != agent.max_trials
        return free and agent.joined and not agent.draining and agent.phase is AgentPhase.RUNNING

    def _finish(self, agent: SimulatedAgent) -> None:
        if agent.phase is AgentPhase.RUNNING and agent.trials > 0:
            agent.trials -= 1
            self.done += 1
            self._notify(agent)
            self._leave_if_done(agent)

    @property
    def _running(self) -> int:
        return sum(
            agent.trials
            for platform in self.platforms.values()
            for agent in platform.agents.values()
        )

    def _change_need(self) -> None:
        running = self._running
        waiting = min(self.queued, self.need.concurrency - running)
        if (waiting, running) != (self.need.waiting, self.need.running) or self.need.closed:
            self.need = replace(
                self.need,
                waiting=waiting,
                running=running,
                log_sequence=self.need.log_sequence + 1,
            )
            self._fold(NeedChanged(self.need))

    def _key_of(self, agent: SimulatedAgent) -> str:
        return next(key for key, one in self.platforms.items() if agent.name in one.agents)
