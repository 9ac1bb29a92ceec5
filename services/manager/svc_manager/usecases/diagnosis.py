"""Diagnosis of the services: findings about bus, stores and agents, with remedies."""

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
"""Time limit of one probe."""
CLOCK_LIMIT_MS: Final = 2_000
"""Maximum difference of clocks; beyond it times of trials make no sense. A message takes far
less."""
_INBOX_LIMIT: Final = 100_000
"""Unread reports that are normal; a manager reads thousands in a second."""
_STREAMS: Final = (
    subjects.STREAM_EXPERIMENTS,
    subjects.STREAM_INBOX,
    subjects.STREAM_TASKS,
    subjects.STREAM_LOGS,
    subjects.STREAM_POOLS,
)
_MEBIBYTE: Final = 1024 * 1024

Probe: TypeAlias = Callable[[], Awaitable[str]]
"""Probes one dependency and returns a description, or raises `ServiceError` with the remedy."""


class Result(IntEnum):
    """Severity of a diagnosis's finding (OK, NOTE, BAD); numbers of the proto contract."""

    OK = 1
    NOTE = 2
    BAD = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check of the diagnosis: name, severity, observation and remedy."""

    check: str
    result: Result
    explanation: str
    """Observation and, unless it is OK, the remedy."""


class Diagnosis:
    """Use case that checks bus, stores, dispatcher and agents, and returns findings.

    Args:
        bus: checked.
        agents: checked.
        probes: further checks, by name.
        version: of this manager.
    """

    def __init__(
        self, bus: Bus, agents: AgentMonitor, probes: Mapping[str, Probe], version: str
    ) -> None:
        self._bus = bus
        self._agents = agents
        self._probes = probes
        self._version = version

    async def run(self) -> list[Finding]:
        """Check the bus and all probes concurrently, then the agents; return all findings."""
        tried = await asyncio.gather(
            self._check_bus(), *(_run_probe(name, probe) for name, probe in self._probes.items())
        )
        found = [finding for findings in tried for finding in findings]
        return [*found, *agent_findings(self._agents.living(), self._version)]

    async def _check_bus(self) -> list[Finding]:
        if not self._bus.connected:
            text = "the manager cannot reach it; see nats.log, and whether nats-server runs"
            text = self._bus.disk_trouble or text
            return [Finding("bus", Result.BAD, text)]
        try:
            async with asyncio.timeout(PROBE_S):
                facts = await self._bus.streams()
        except (TimeoutError, ServiceError) as error:
            text = (
                f"it does not answer ({str(error) or 'too slow'}); see nats.log, is its disk full?"
            )
            return [Finding("bus", Result.BAD, self._bus.disk_trouble or text)]
        trouble = self._bus.disk_trouble
        state = Finding("bus", Result.BAD if trouble else Result.OK, trouble or "connected")
        return [state, *stream_findings(facts)]


async def _run_probe(name: str, probe: Probe) -> list[Finding]:
    try:
        async with asyncio.timeout(PROBE_S):
            return [Finding(name, Result.OK, await probe())]
    except TimeoutError:
        return [Finding(name, Result.BAD, f"no answer within {PROBE_S:g} s; is it up?")]
    except ServiceError as error:
        return [Finding(name, Result.BAD, error.message)]


def stream_findings(facts: Iterable[StreamFacts]) -> Iterator[Finding]:
    """Yield a finding for each stream of the bus: missing, lagging replicas, or its size."""
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
            text = f"{size} unread: is a manager overloaded, or the owner of an experiment away?"
            yield Finding(check, Result.NOTE, text)
        else:
            yield Finding(check, Result.OK, size)


def agent_findings(agents: Iterable[Agent], version: str) -> Iterator[Finding]:
    """Yield findings about each live agent and their number; BAD if there is none.

    Args:
        agents: agents with a recent presence.
        version: of the manager.
    """
    count = 0
    for agent in agents:
        count += 1
        yield from _findings_of(agent, version)
    if count == 0:
        text = "none is connected, so no trial can start; see trial-runner.log"
        yield Finding("agents", Result.BAD, text)
    else:
        yield Finding("agents", Result.OK, f"{count} connected")


def _findings_of(agent: Agent, version: str) -> Iterator[Finding]:
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
