"""Looks at what the services need, and says what is wrong and what to do about it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from svc_common import subjects
from svc_common.errors import ServiceError
from svc_common.messaging.ports import Bus, StreamFacts
from svc_manager.agents.liveness import Agent, AgentMonitor

PROBE_S: Final = 5.0
"""Longest wait for one of the things that are looked at."""
CLOCK_LIMIT_MS: Final = 2_000
"""Clocks that differ by more make times of trials senseless; the way of a word takes far less."""
_INBOX_LIMIT: Final = 100_000
"""Reports that nobody has read; a manager reads thousands in a second."""
_STREAMS: Final = (
    subjects.STREAM_EXPERIMENTS,
    subjects.STREAM_INBOX,
    subjects.STREAM_TASKS,
    subjects.STREAM_LOGS,
)
_MEBIBYTE: Final = 1024 * 1024

Probe: TypeAlias = Callable[[], Awaitable[str]]
"""Tries something and tells what it found, or raises `ServiceError` with the remedy."""


class Result(IntEnum):
    """How bad a finding is; the numbers are those of the contract."""

    OK = 1
    NOTE = 2
    BAD = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found."""

    check: str
    result: Result
    explanation: str
    """What was found and, unless it is OK, what to do."""


class Diagnosis:
    """The use case.

    Args:
        bus: looked at.
        agents: looked at.
        probes: further things to try, by name.
        version: of this manager.
    """

    def __init__(
        self, bus: Bus, agents: AgentMonitor, probes: Mapping[str, Probe], version: str
    ) -> None:
        self._bus = bus
        self._agents = agents
        self._probes = probes
        self._version = version

    async def look(self) -> list[Finding]:
        """Look at everything at once; takes `PROBE_S` at most."""
        tried = await asyncio.gather(
            self._look_at_bus(), *(_try(name, probe) for name, probe in self._probes.items())
        )
        found = [finding for findings in tried for finding in findings]
        return [*found, *of_agents(self._agents.living(), self._version)]

    async def _look_at_bus(self) -> list[Finding]:
        if not self._bus.connected:
            text = "the manager cannot reach it; see nats.log, and whether nats-server runs"
            return [Finding("bus", Result.BAD, text)]
        try:
            async with asyncio.timeout(PROBE_S):
                facts = await self._bus.streams()
        except (TimeoutError, ServiceError) as error:
            text = (
                f"it does not answer ({str(error) or 'too slow'}); see nats.log, is its disk full?"
            )
            return [Finding("bus", Result.BAD, text)]
        return [Finding("bus", Result.OK, "connected"), *of_streams(facts)]


async def _try(name: str, probe: Probe) -> list[Finding]:
    try:
        async with asyncio.timeout(PROBE_S):
            return [Finding(name, Result.OK, await probe())]
    except TimeoutError:
        return [Finding(name, Result.BAD, f"no answer within {PROBE_S:g} s; is it up?")]
    except ServiceError as error:
        return [Finding(name, Result.BAD, error.message)]


def of_streams(facts: Iterable[StreamFacts]) -> Iterator[Finding]:
    """Judge the streams of the bus."""
    by_name = {stream.name: stream for stream in facts}
    for name in _STREAMS:
        stream = by_name.get(name)
        check = f"stream {name}"
        if stream is None:
            text = "is missing; the next start of a service makes it again, empty"
            yield Finding(check, Result.BAD, text)
            continue
        size = f"{stream.messages} messages, {stream.size_bytes / _MEBIBYTE:.1f} MiB"
        if stream.replicas_missing:
            text = (
                f"{size}; {stream.replicas_missing} of {stream.replicas} copies are away or "
                "behind: bring that nats-server back"
            )
            yield Finding(check, Result.BAD, text)
        elif name == subjects.STREAM_INBOX and stream.messages > _INBOX_LIMIT:
            text = f"{size} that nobody has read: is a manager overloaded, or an experiment's away?"
            yield Finding(check, Result.NOTE, text)
        else:
            yield Finding(check, Result.OK, size)


def of_agents(agents: Iterable[Agent], version: str) -> Iterator[Finding]:
    """Judge the agents that live.

    Args:
        agents: those that have been heard of lately.
        version: of the manager.
    """
    count = 0
    for agent in agents:
        count += 1
        yield from _of_agent(agent, version)
    if count == 0:
        text = "none is connected, so no trial can start; see trial-runner.log"
        yield Finding("agents", Result.BAD, text)
    else:
        yield Finding("agents", Result.OK, f"{count} connected")


def _of_agent(agent: Agent, version: str) -> Iterator[Finding]:
    presence = agent.presence
    name = f"agent {presence.runner_id}"
    if presence.version and presence.version != version:
        text = f"has version {presence.version}, the manager {version}: install the same everywhere"
        yield Finding(name, Result.BAD, text)
    if presence.HasField("sent_at"):
        apart_ms = agent.seen_at_ms - presence.sent_at.ToMilliseconds()
        if abs(apart_ms) > CLOCK_LIMIT_MS:
            way = "behind" if apart_ms > 0 else "ahead"
            text = (
                f"the clock of {presence.host_name} is {abs(apart_ms) / 1000:.1f} s {way} of the "
                "manager's: let both follow a time server (timedatectl set-ntp true)"
            )
            yield Finding(name, Result.BAD, text)
    if presence.draining:
        yield Finding(name, Result.NOTE, "takes no more trials: it is draining")
