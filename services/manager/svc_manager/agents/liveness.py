"""Liveness of agents, and the notifications that follow when one falls silent.

Presence is kept in memory only and is never an event. Its consequences become events of the
experiments concerned.
"""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import task_pb2
from nni_wire.pools import experiment_of_pool
from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import InvalidArgumentError
from svc_common.experiment_events.causes import LossCause, LossReason, WaitReason
from svc_common.logs import get_logger
from svc_common.messaging.decoding import decode_off_loop
from svc_common.messaging.limits import ACK_WAIT_S
from svc_common.messaging.ports import Bus
from svc_common.rpc.message_parts import FEW_PARTS
from svc_common.tasks import wait_first
from svc_manager.converters.old_texts import old_wait_text
from svc_manager.converters.reasons import wait_from
from svc_manager.converters.tasks import drop_to_bytes
from svc_manager.domain.decide_reports import is_affected
from svc_manager.domain.effects import SendDrop
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.explanation import AgentFacts
from svc_manager.domain.inputs import (
    AgentGone,
    AgentOverdue,
    AgentRestarted,
    AgentSeen,
    AgentSilent,
    AttemptGone,
    HeldAttempt,
    Notification,
)
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial

SILENT_AFTER_S: Final = ACK_WAIT_S
"""An agent that could not renew for so long kills its trials."""
OVERDUE_AFTER_S: Final = 12.0
"""Silence of an overdue agent: presences come every 5 s, so two are missing."""
OVERDUE_EVERY_S: Final = 2.0
"""Interval at which stopping experiments are checked for trials of overdue agents."""
GONE_AFTER_S: Final = 45.0
"""Silence after which an agent has killed its trials, TERM, grace and KILL included."""
SUSPECT_AFTER_S: Final = 30.0
"""A restarted agent reports at once which trials its predecessor lost; an attempt that it neither
holds nor has reported after so long was lost with its disk."""
BEAT_EVERY_S: Final = 5.0
"""Interval at which this process checks that it has not stood still."""
PAUSE_AFTER_S: Final = 5.0
"""Delay of such a check that is a pause of this process, and no load of the machine."""
_POOLS_LIMIT: Final = 1_000
"""Pools that agents may name; each costs the bus a consumer."""
LEAVING_S: Final = 35.0
"""Silence that a leaving agent is credited with: its last reports may be on the way."""


@dataclass(slots=True)
class Agent:
    """Last presence message of an agent, its time, and whether the agent has fallen silent."""

    presence: task_pb2.RunnerPresence
    seen_s: float
    """Arrival of the last presence, by the monotonic clock."""
    seen_at_ms: int
    """Arrival of the last presence, ms since 1970; 0: none arrived, only logs name the agent."""
    silent: bool = False
    credited_s: float = 0.0
    """Time since ``seen_s`` that was no silence, but added as its platform has ended the agent."""
    suspects: list[tuple[str, HeldAttempt]] = field(default_factory=list)
    """(experiment, attempt) pairs that logs assign to the agent, and that its first presence
    lacked."""
    suspected_s: float = 0.0
    """Time at which ``suspects`` was set, by the monotonic clock."""

    @property
    def known(self) -> bool:
        """True if this manager has received a presence message of the agent."""
        return self.seen_at_ms > 0


class MonitoredExperiment(Protocol):
    """Interface of an actor as the agent monitor needs it: id, state, and a notification queue."""

    @property
    def id(self) -> str:
        """Id of the experiment."""
        ...

    @property
    def experiment(self) -> Experiment:
        """State of the experiment."""
        ...

    def notify(self, notification: Notification) -> None:
        """Queue a notification for the actor's next round; return at once."""
        ...


class ExperimentSource(Protocol):
    """Interface of the actor registry for the agent monitor: live actors, ends of stopped logs."""

    def actors(self) -> Iterable[MonitoredExperiment]:
        """Return the live experiments."""
        ...

    def stopped_at(self, experiment_id: str) -> int | None:
        """Return the last sequence in the log of a stopped experiment that is not live.

        None: it is not known to be stopped.
        """
        ...


class AgentMonitor:
    """Monitor that detects new, restarted, silent and gone agents and notifies experiments.

    Args:
        bus: source of presences.
        clock: measures silence.
    """

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._agents: dict[str, Agent] = {}
        self._pools: set[str] = set()
        self._actors: ExperimentSource | None = None
        self._changed = asyncio.Event()
        self._beat_s: float | None = None
        """Time of the last check for a pause, by the monotonic clock; None: there was none."""

    def attach(self, actors: ExperimentSource) -> None:
        """Set the registry whose experiments are notified; monitor the agents their logs name."""
        self._actors = actors
        for actor in actors.actors():
            self._expect_named(actor.experiment)

    def expect(self, experiment_id: str, experiment: Experiment) -> None:
        """Monitor the agents that a loaded experiment's log names; note attempts that they lack."""
        self._expect_named(experiment)
        for agent in self._agents.values():
            unheld = _unheld(experiment, agent.presence)
            if agent.known and unheld:
                agent.suspects = [
                    *(one for one in agent.suspects if one[0] != experiment_id),
                    *((experiment_id, held) for held in unheld),
                ]
                agent.suspected_s = self._clock.monotonic_s()
                self._changed.set()

    def _expect_named(self, experiment: Experiment) -> None:
        if experiment.settings.has_callers:
            return  # its trials name callers, which have leases
        for trial in experiment.live.values():
            if trial.runner_id and trial.runner_id not in self._agents:
                presence = task_pb2.RunnerPresence(runner_id=trial.runner_id)
                self._agents[trial.runner_id] = Agent(presence, self._clock.monotonic_s(), 0)
                self._changed.set()

    def of_pools(self, pools: Collection[str]) -> list[str]:
        """Return the ids of these pools' agents that send presence messages and are not silent."""
        return [
            key
            for key, agent in self._agents.items()
            if agent.known and not agent.silent and agent.presence.pool in pools
        ]

    def living(self) -> list[Agent]:
        """Return the agents that send presence messages and are not silent, sorted by id."""
        agents = sorted(self._agents.items())
        return [agent for _, agent in agents if agent.known and not agent.silent]

    def facts(self, experiment_id: str, trial: Trial | None) -> list[AgentFacts]:
        """Return pool, silence, held trials and wait of each known agent, for an explanation.

        Args:
            experiment_id: experiment of the trial.
            trial: the trial to explain; None: a trial that does not exist yet.
        """
        now_s = self._clock.monotonic_s()
        facts = []
        for runner_id, agent in sorted(self._agents.items()):
            if agent.known:
                held = None if trial is None else _entry_of(agent.presence, experiment_id, trial)
                facts.append(
                    AgentFacts(
                        runner_id,
                        agent.presence.pool,
                        now_s - agent.seen_s,
                        agent.silent,
                        agent.presence.draining,
                        len(agent.presence.trials),
                        held is not None,
                        None if held is None else _wait_of(held),
                    )
                )
        return facts

    def get(self, runner_id: str) -> Agent | None:
        """Return a known agent; None: no presence message of it has arrived."""
        agent = self._agents.get(runner_id)
        return agent if agent is not None and agent.known else None

    def is_on(self, runner_id: str, host_name: str) -> bool:
        """Return whether an agent's host is this one; True also if agent or host is unknown."""
        agent = self.get(runner_id)
        return agent is None or agent.presence.host_name in {"", host_name}

    async def listen(self) -> None:
        """Read agents' presence messages, open their pools, handle them; until cancelled."""
        feed = await self._bus.signals.subscribe(subjects.ALL_PRESENCES)
        async with aclosing(feed):
            async for signal in feed:
                try:
                    presence = await decode_off_loop(
                        task_pb2.RunnerPresence, signal.payload, FEW_PARTS
                    )
                except DecodeError as error:
                    get_logger().warning(
                        "presence dropped", subject=signal.subject, error=str(error)
                    )
                    continue
                if presence.runner_id != subjects.runner_of_presence(signal.subject):
                    # The bus lets an agent publish below its own name only; so does this check.
                    get_logger().warning("foreign presence dropped", subject=signal.subject)
                    continue
                if await self._open_pool(presence.pool):
                    self.handle_presence(presence)
                    await asyncio.sleep(0)  # a thousand presences may arrive at once

    async def _open_pool(self, pool: str) -> bool:
        """Open the queue of an agent's pool once, if name and number are valid; return whether.

        Returns:
            Whether the pool exists now.
        """
        if pool in self._pools:
            return True
        try:
            subjects.check_id("pool", pool)
        except InvalidArgumentError as error:
            get_logger().warning("presence dropped", error=error.message)
            return False
        if experiment_of_pool(pool) is not None:
            return True  # the manager of the experiment has opened it, and closes it
        if len(self._pools) >= _POOLS_LIMIT:
            get_logger().warning("presence dropped", error=f"more than {_POOLS_LIMIT} pools")
            return False
        await self._bus.tasks.open_pool(pool)
        self._pools.add(pool)
        return True

    def handle_presence(self, presence: task_pb2.RunnerPresence) -> None:
        """Store an agent's presence message; notify experiments of restart, affected attempts."""
        now_s = self._clock.monotonic_s()
        agent = Agent(presence, now_s, int(self._clock.now().timestamp() * 1000))
        if presence.leaving:
            agent.seen_s = now_s - LEAVING_S
        before = self._agents.get(presence.runner_id)
        self._agents[presence.runner_id] = agent
        if before and before.known and before.presence.boot_id == presence.boot_id:
            agent.suspected_s = before.suspected_s
            agent.suspects = [one for one in before.suspects if one[1] not in _held(presence)]
        else:
            agent.suspected_s = now_s
            agent.suspects = [
                (actor.id, held)
                for actor in (self._actors.actors() if self._actors is not None else ())
                for held in _unheld(actor.experiment, presence)
            ]
        if before is None or presence.leaving or agent.suspected_s == now_s:
            self._changed.set()
        if self._actors is not None and not presence.leaving:
            self._notify_seen(presence, self._actors)
            boot_id = before.presence.boot_id if before is not None and before.known else ""
            if presence.restarted or (boot_id and boot_id != presence.boot_id):
                self._notify_restarted(presence, self._actors)

    def platform_ended(self, runner_id: str) -> None:
        """Shorten the wait for an agent that its platform no longer has, as for a leaving one.

        Its last reports may be on the way. If it still runs, its next presence undoes this.
        """
        agent = self._agents.get(runner_id)
        if agent is None:
            return
        seen_s = min(agent.seen_s, self._clock.monotonic_s() - LEAVING_S)
        agent.credited_s += agent.seen_s - seen_s
        agent.seen_s = seen_s
        self._changed.set()

    def _notify_seen(self, presence: task_pb2.RunnerPresence, actors: ExperimentSource) -> None:
        held: dict[str, list[HeldAttempt]] = {}
        for trial in presence.trials:
            held.setdefault(trial.experiment_id, []).append(
                HeldAttempt(trial.trial_id, trial.attempt, trial.claim_id)
            )
        if not held:
            return
        for actor in actors.actors():
            if actor.id in held:
                seen = AgentSeen(presence.runner_id, tuple(held.pop(actor.id)))
                if is_affected(actor.experiment, seen):
                    actor.notify(seen)
        for experiment_id, trials in held.items():
            sequence = actors.stopped_at(experiment_id)
            if sequence is not None:
                self._drop(presence.runner_id, experiment_id, trials, sequence)

    def _notify_restarted(
        self, presence: task_pb2.RunnerPresence, actors: ExperimentSource
    ) -> None:
        """Notify experiments of a restarted agent, if a task of its pool has no claim yet."""
        for actor in actors.actors():
            if any(
                trial.pool == presence.pool and not trial.claim_id
                for trial in actor.experiment.live.values()
            ):
                actor.notify(AgentRestarted(presence.pool, presence.boot_id))

    def _drop(
        self, runner_id: str, experiment_id: str, trials: Iterable[HeldAttempt], log_sequence: int
    ) -> None:
        """Order an agent to end attempts of an experiment that no longer exists or is stopped."""
        subject = subjects.control_subject(runner_id)
        for held in trials:
            drop = SendDrop(runner_id, held.trial_id, held.attempt, held.claim_id)
            self._bus.signals.publish(subject, drop_to_bytes(experiment_id, drop, log_sequence))

    async def watch(self) -> None:
        """Until cancelled, notify experiments of silent or gone agents; not while the bus is away.

        While the bus is away no presence can arrive, so silence is not checked.
        """
        while True:
            await self._bus.wait_connected()
            self._check_silence()
            await self._sleep()

    async def extend_deadlines(self) -> None:
        """After each reconnection of the bus, count every agent as just seen; until cancelled."""
        while True:
            await self._bus.wait_connected(connected=False)
            await self._bus.wait_connected()
            now_s = self._clock.monotonic_s()
            for agent in self._agents.values():
                agent.seen_s, agent.credited_s = max(agent.seen_s, now_s), 0.0

    async def watch_pauses(self) -> None:
        """Take the time in which this process stood still off all silences; until cancelled.

        When a container, a process group or a virtual machine goes on after it had been stopped,
        its agents were stopped, too, or their presence messages wait to be read.
        """
        while True:
            self._take_off_pause()
            await self._clock.sleep(BEAT_EVERY_S)

    def _take_off_pause(self) -> None:
        now_s, beat_s = self._clock.monotonic_s(), self._beat_s
        self._beat_s = now_s
        if beat_s is None or now_s - beat_s < BEAT_EVERY_S + PAUSE_AFTER_S:
            return
        pause_s = now_s - beat_s - BEAT_EVERY_S
        get_logger().warning("this process stood still", pause_s=round(pause_s, 3))
        for agent in self._agents.values():
            agent.seen_s = min(agent.seen_s + pause_s, now_s)
            agent.suspected_s = min(agent.suspected_s + pause_s, now_s)

    def _check_silence(self) -> None:
        if self._beat_s is not None:
            self._take_off_pause()  # before the timer of that task, if this one was due first
        now_s = self._clock.monotonic_s()
        for runner_id, agent in list(self._agents.items()):
            silence_s = now_s - agent.seen_s
            if silence_s >= GONE_AFTER_S:
                del self._agents[runner_id]
                loss = (
                    LossReason(LossCause.AGENT_LEFT)
                    if agent.presence.leaving
                    else LossReason(
                        LossCause.AGENT_SILENT,
                        silence_ms=round((silence_s - agent.credited_s) * 1000),
                        runner_id=runner_id,
                    )
                )
                self._notify_all(runner_id, AgentGone(runner_id, loss))
            elif silence_s >= SILENT_AFTER_S and not agent.silent:
                agent.silent = True
                self._notify_all(runner_id, AgentSilent(runner_id))
            elif silence_s >= OVERDUE_AFTER_S:
                self._notify_overdue(runner_id)
            elif agent.suspects and now_s - agent.suspected_s >= SUSPECT_AFTER_S:
                suspects, agent.suspects = agent.suspects, []
                self._notify_attempts_gone(suspects)

    def _notify_attempts_gone(self, suspects: Iterable[tuple[str, HeldAttempt]]) -> None:
        loss = LossReason(LossCause.UNKNOWN_TO_AGENT)
        actors = {actor.id: actor for actor in self._actors.actors()} if self._actors else {}
        for experiment_id, held in suspects:
            if experiment_id in actors:
                actors[experiment_id].notify(AttemptGone(held, loss))

    def _notify_overdue(self, runner_id: str) -> None:
        """Notify STOPPING experiments that an agent is overdue to end the trials it was to stop."""
        for actor in self._actors.actors() if self._actors is not None else ():
            if actor.experiment.state is ExperimentState.STOPPING and any(
                trial.runner_id == runner_id and trial.asked_end is not None
                for trial in actor.experiment.live.values()
            ):
                actor.notify(AgentOverdue(runner_id))

    def _notify_all(self, runner_id: str, notification: AgentSilent | AgentGone) -> None:
        if self._actors is None:
            return
        for actor in self._actors.actors():
            if any(trial.runner_id == runner_id for trial in actor.experiment.live.values()):
                actor.notify(notification)

    async def _sleep(self) -> None:
        """Sleep until the next agent's silence is due for a check, or an agent joins or leaves."""
        self._changed.clear()
        now_s = self._clock.monotonic_s()
        moments = [_next_check_s(agent, now_s) for agent in self._agents.values()]
        moments += [
            agent.suspected_s + SUSPECT_AFTER_S for agent in self._agents.values() if agent.suspects
        ]
        if not moments:
            await self._changed.wait()
            return
        rest_s = max(0.001, min(moments) - self._clock.monotonic_s())
        await wait_first(self._clock.sleep(rest_s), self._changed.wait())


def _entry_of(
    presence: task_pb2.RunnerPresence, experiment_id: str, trial: Trial
) -> task_pb2.HeldTrial | None:
    """Return the entry for a trial's current attempt in an agent's presence message, or None."""
    for held in presence.trials:
        if (held.experiment_id, held.trial_id, held.attempt) == (
            experiment_id,
            trial.id,
            trial.attempt,
        ):
            return held
    return None


def _wait_of(held: task_pb2.HeldTrial) -> WaitReason | None:
    """Return the reason for which an attempt held by an agent waits; parse the old text form."""
    if held.HasField("wait"):
        return wait_from(held.wait)
    return old_wait_text(held.waiting_for) if held.waiting_for else None


def _next_check_s(agent: Agent, now_s: float) -> float:
    """Return the time of the next check of an agent's silence, by threshold and interval."""
    if now_s < agent.seen_s + OVERDUE_AFTER_S:
        return agent.seen_s + OVERDUE_AFTER_S
    threshold_s = agent.seen_s + (GONE_AFTER_S if agent.silent else SILENT_AFTER_S)
    return min(threshold_s, now_s + OVERDUE_EVERY_S)


def _held(presence: task_pb2.RunnerPresence) -> set[HeldAttempt]:
    """Return the attempts that a presence message lists."""
    return {HeldAttempt(held.trial_id, held.attempt, held.claim_id) for held in presence.trials}


def _unheld(experiment: Experiment, presence: task_pb2.RunnerPresence) -> list[HeldAttempt]:
    """Return attempts that the log assigns to an agent, but its presence message does not list."""
    named = [
        HeldAttempt(trial.id, trial.attempt, trial.claim_id)
        for trial in experiment.live.values()
        if trial.runner_id == presence.runner_id
    ]
    if not named:
        return []
    held = _held(presence)
    return [one for one in named if one not in held]
