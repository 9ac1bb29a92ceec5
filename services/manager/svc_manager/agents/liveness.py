"""The agents that the manager has heard of, and what follows when one falls silent.

Presence is nobody's fact: it lives in memory only. What follows from it becomes a fact of the
experiments concerned.
"""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import task_pb2
from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import InvalidArgumentError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus
from svc_manager.converters.tasks import drop_to_bytes
from svc_manager.domain.decide_reports import concerns
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

SILENT_AFTER_S: Final = 30.0
"""`ack_wait` of tasks: an agent that could not renew for so long kills its trials."""
MISSED_AFTER_S: Final = 12.0
"""An agent says every 5 s that it lives: it has missed to do so twice."""
MISSED_EVERY_S: Final = 2.0
"""How often experiments are looked through for trials that wait for such an agent only."""
GONE_AFTER_S: Final = 45.0
"""By now a silent agent has killed its trials, TERM, grace and KILL included."""
SUSPECT_AFTER_S: Final = 30.0
"""A restarted agent reports what its predecessor lost at once; whatever it neither holds nor has
reported after so long was forgotten with its disk."""
_POOLS_LIMIT: Final = 1_000
"""Pools that agents may name; each costs the bus a consumer."""
LEAVING_S: Final = 35.0
"""An agent that says goodbye counts as silent for so long: its last reports may be on the way."""


@dataclass(slots=True)
class Agent:
    """One agent."""

    presence: task_pb2.RunnerPresence
    seen_s: float
    """When it was heard of last, by the monotonic clock."""
    seen_at_ms: int
    """The same, ms since 1970; 0: never, only the logs speak of it."""
    silent: bool = False
    suspects: list[tuple[str, HeldAttempt]] = field(default_factory=list)
    """(experiment, attempt) that logs say it has, but it did not hold when it began to speak."""
    suspected_s: float = 0.0
    """When they were noted, by the monotonic clock."""

    @property
    def known(self) -> bool:
        """Whether it has ever been heard of by this manager."""
        return self.seen_at_ms > 0


class MonitoredExperiment(Protocol):
    """An experiment that is told about agents: the part of an actor that is needed here."""

    @property
    def id(self) -> str:
        """Which experiment."""
        ...

    @property
    def experiment(self) -> Experiment:
        """What its log tells."""
        ...

    def notify(self, notification: Notification) -> None:
        """Say something that needs no answer."""
        ...


class ExperimentSource(Protocol):
    """Where the live experiments are found: the part of the roster that is needed here."""

    def found(self) -> Iterable[MonitoredExperiment]:
        """Give those that there are now."""
        ...

    def stopped_at(self, experiment_id: str) -> int | None:
        """Give the end of the log of an experiment that is stopped and not among those found.

        None: it is not known to be stopped.
        """
        ...


class AgentMonitor:
    """Listens to agents; implements `svc_manager.ports.Agents`.

    Args:
        bus: where agents speak.
        clock: tells how long one has been silent.
    """

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._agents: dict[str, Agent] = {}
        self._pools: set[str] = set()
        self._actors: ExperimentSource | None = None
        self._changed = asyncio.Event()

    def attach(self, actors: ExperimentSource) -> None:
        """Tell these experiments what follows; agents their logs name count as just seen."""
        self._actors = actors
        for actor in actors.found():
            self._expect_named(actor.experiment)

    def expect(self, experiment_id: str, experiment: Experiment) -> None:
        """See `Agents.expect`."""
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
        for trial in experiment.live.values():
            if trial.runner_id and trial.runner_id not in self._agents:
                presence = task_pb2.RunnerPresence(runner_id=trial.runner_id)
                self._agents[trial.runner_id] = Agent(presence, self._clock.monotonic_s(), 0)
                self._changed.set()

    def of_pools(self, pools: Collection[str]) -> list[str]:
        """See `Agents.of_pools`."""
        return [
            key
            for key, agent in self._agents.items()
            if agent.known and not agent.silent and agent.presence.pool in pools
        ]

    def living(self) -> list[Agent]:
        """Give the agents that have been heard of lately, by id."""
        agents = sorted(self._agents.items())
        return [agent for _, agent in agents if agent.known and not agent.silent]

    def facts(self, experiment_id: str, trial: Trial | None) -> list[AgentFacts]:
        """Give what explanations need of every agent that has been heard of, by id.

        Args:
            experiment_id: whose trial.
            trial: which agents may hold; None: nobody asks for one.
        """
        now_s = self._clock.monotonic_s()
        return [
            AgentFacts(
                runner_id,
                agent.presence.pool,
                now_s - agent.seen_s,
                agent.silent,
                agent.presence.draining,
                len(agent.presence.trials),
                None if trial is None else _waits_for(agent.presence, experiment_id, trial),
            )
            for runner_id, agent in sorted(self._agents.items())
            if agent.known
        ]

    def get(self, runner_id: str) -> Agent | None:
        """Give an agent that has been heard of; None: it has not."""
        agent = self._agents.get(runner_id)
        return agent if agent is not None and agent.known else None

    def is_on(self, runner_id: str, host_name: str) -> bool:
        """Tell whether an agent runs on a machine; one that was not heard of yet may."""
        agent = self.get(runner_id)
        return agent is None or agent.presence.host_name in {"", host_name}

    async def listen(self) -> None:
        """Take in presences until cancelled."""
        feed = await self._bus.signals.subscribe(subjects.ALL_PRESENCES)
        async with aclosing(feed):
            async for signal in feed:
                try:
                    presence = task_pb2.RunnerPresence.FromString(signal.payload)
                except DecodeError as error:
                    get_logger().warning(
                        "presence dropped", subject=signal.subject, error=str(error)
                    )
                    continue
                if presence.runner_id != subjects.runner_of_presence(signal.subject):
                    # The bus lets an agent speak below its own name only; so do we.
                    get_logger().warning("presence of another dropped", subject=signal.subject)
                    continue
                if await self._open_pool(presence.pool):
                    self.handle_presence(presence)
                    await asyncio.sleep(0)  # a thousand agents may speak at once

    async def _open_pool(self, pool: str) -> bool:
        """Let agents of a pool pull: they may make nothing at the bus themselves.

        Returns:
            Whether there is such a pool, or may be.
        """
        if pool in self._pools:
            return True
        try:
            subjects.check_id("pool", pool)
        except InvalidArgumentError as error:
            get_logger().warning("presence dropped", error=error.message)
            return False
        if len(self._pools) >= _POOLS_LIMIT:
            get_logger().warning("presence dropped", error=f"more than {_POOLS_LIMIT} pools")
            return False
        await self._bus.tasks.open_pool(pool)
        self._pools.add(pool)
        return True

    def handle_presence(self, presence: task_pb2.RunnerPresence) -> None:
        """Take in one presence."""
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
                for actor in (self._actors.found() if self._actors is not None else ())
                for held in _unheld(actor.experiment, presence)
            ]
        if before is None or presence.leaving or agent.suspected_s == now_s:
            self._changed.set()
        if self._actors is not None and not presence.leaving:
            self._tell_seen(presence, self._actors)
            boot_id = before.presence.boot_id if before is not None and before.known else ""
            if presence.restarted or (boot_id and boot_id != presence.boot_id):
                self._tell_restarted(presence, self._actors)

    def _tell_seen(self, presence: task_pb2.RunnerPresence, actors: ExperimentSource) -> None:
        held: dict[str, list[HeldAttempt]] = {}
        for trial in presence.trials:
            held.setdefault(trial.experiment_id, []).append(
                HeldAttempt(trial.trial_id, trial.attempt, trial.claim_id)
            )
        if not held:
            return
        for actor in actors.found():
            if actor.id in held:
                seen = AgentSeen(presence.runner_id, tuple(held.pop(actor.id)))
                if concerns(actor.experiment, seen):
                    actor.notify(seen)
        for experiment_id, trials in held.items():
            sequence = actors.stopped_at(experiment_id)
            if sequence is not None:
                self._drop(presence.runner_id, experiment_id, trials, sequence)

    def _tell_restarted(self, presence: task_pb2.RunnerPresence, actors: ExperimentSource) -> None:
        """Tell those whose tasks the agent's predecessor may have been given and not claimed."""
        for actor in actors.found():
            if any(
                trial.pool == presence.pool and not trial.claim_id
                for trial in actor.experiment.live.values()
            ):
                actor.notify(AgentRestarted(presence.pool, presence.boot_id))

    def _drop(
        self, runner_id: str, experiment_id: str, trials: Iterable[HeldAttempt], log_sequence: int
    ) -> None:
        """Tell an agent to drop tasks that outlived their experiment in the queue."""
        subject = subjects.control_subject(runner_id)
        for held in trials:
            drop = SendDrop(runner_id, held.trial_id, held.attempt, held.claim_id)
            self._bus.signals.publish(subject, drop_to_bytes(experiment_id, drop, log_sequence))

    async def watch(self) -> None:
        """Say who has fallen silent, until cancelled.

        While the bus is away nobody can be heard, so nobody is judged.
        """
        while True:
            await self._bus.wait_connected()
            self._judge()
            await self._sleep()

    async def extend_deadlines(self) -> None:
        """Give everybody the whole time again after the bus was away, until cancelled."""
        while True:
            await self._bus.wait_connected(connected=False)
            await self._bus.wait_connected()
            now_s = self._clock.monotonic_s()
            for agent in self._agents.values():
                agent.seen_s = max(agent.seen_s, now_s)

    def _judge(self) -> None:
        now_s = self._clock.monotonic_s()
        for runner_id, agent in list(self._agents.items()):
            silence_s = now_s - agent.seen_s
            if silence_s >= GONE_AFTER_S:
                del self._agents[runner_id]
                reason = (
                    "its agent has left"
                    if agent.presence.leaving
                    else f"its agent {runner_id} has not been heard of for {silence_s:.0f} s"
                )
                self._tell_all(runner_id, AgentGone(runner_id, reason))
            elif silence_s >= SILENT_AFTER_S and not agent.silent:
                agent.silent = True
                self._tell_all(runner_id, AgentSilent(runner_id))
            elif silence_s >= MISSED_AFTER_S:
                self._tell_missed(runner_id)
            elif agent.suspects and now_s - agent.suspected_s >= SUSPECT_AFTER_S:
                suspects, agent.suspects = agent.suspects, []
                self._tell_gone(suspects)

    def _tell_gone(self, suspects: Iterable[tuple[str, HeldAttempt]]) -> None:
        actors = {actor.id: actor for actor in self._actors.found()} if self._actors else {}
        for experiment_id, held in suspects:
            if experiment_id in actors:
                actors[experiment_id].notify(AttemptGone(held, "its agent knows nothing of it"))

    def _tell_missed(self, runner_id: str) -> None:
        """Tell those who wait for nothing but the end of an agent's trials."""
        for actor in self._actors.found() if self._actors is not None else ():
            if actor.experiment.state is ExperimentState.STOPPING and any(
                trial.runner_id == runner_id and trial.asked_end is not None
                for trial in actor.experiment.live.values()
            ):
                actor.notify(AgentOverdue(runner_id))

    def _tell_all(self, runner_id: str, notification: AgentSilent | AgentGone) -> None:
        if self._actors is None:
            return
        for actor in self._actors.found():
            if any(trial.runner_id == runner_id for trial in actor.experiment.live.values()):
                actor.notify(notification)

    async def _sleep(self) -> None:
        """Wait until the next agent can fall silent, or one comes or leaves."""
        self._changed.clear()
        now_s = self._clock.monotonic_s()
        moments = [_next_judgement_s(agent, now_s) for agent in self._agents.values()]
        moments += [
            agent.suspected_s + SUSPECT_AFTER_S for agent in self._agents.values() if agent.suspects
        ]
        if not moments:
            await self._changed.wait()
            return
        rest_s = max(0.001, min(moments) - self._clock.monotonic_s())
        sleeping = asyncio.ensure_future(self._clock.sleep(rest_s))
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({sleeping, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            changed.cancel()


def _waits_for(presence: task_pb2.RunnerPresence, experiment_id: str, trial: Trial) -> str | None:
    """Return what a trial waits for at an agent; None: the agent does not hold it."""
    for held in presence.trials:
        if (held.experiment_id, held.trial_id, held.attempt) == (
            experiment_id,
            trial.id,
            trial.attempt,
        ):
            return held.waiting_for
    return None


def _next_judgement_s(agent: Agent, now_s: float) -> float:
    """Return when something can follow from the silence of an agent."""
    if now_s < agent.seen_s + MISSED_AFTER_S:
        return agent.seen_s + MISSED_AFTER_S
    threshold_s = agent.seen_s + (GONE_AFTER_S if agent.silent else SILENT_AFTER_S)
    return min(threshold_s, now_s + MISSED_EVERY_S)


def _held(presence: task_pb2.RunnerPresence) -> set[HeldAttempt]:
    """Return the attempts that an agent says to hold."""
    return {HeldAttempt(held.trial_id, held.attempt, held.claim_id) for held in presence.trials}


def _unheld(experiment: Experiment, presence: task_pb2.RunnerPresence) -> list[HeldAttempt]:
    """Return the attempts that a log says an agent has, and it does not hold."""
    named = [
        HeldAttempt(trial.id, trial.attempt, trial.claim_id)
        for trial in experiment.live.values()
        if trial.runner_id == presence.runner_id
    ]
    if not named:
        return []
    held = _held(presence)
    return [one for one in named if one not in held]
