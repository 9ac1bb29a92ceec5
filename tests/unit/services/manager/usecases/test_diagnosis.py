from collections.abc import Awaitable, Callable

import pytest

from nni_proto.runner.v1 import task_pb2
from svc_common.clock import ManualClock
from svc_common.errors import UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.ports import StreamFacts
from svc_manager.agents.liveness import AgentMonitor
from svc_manager.usecases.diagnosis import Diagnosis, Finding, Result, stream_findings

VERSION = "4.0.0"


def notifications(findings: list[Finding], check: str) -> list[tuple[Result, str]]:
    return [(f.result, f.explanation) for f in findings if f.check == check]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bus() -> InMemoryBus:
    return InMemoryBus()


@pytest.fixture
def agents(bus: InMemoryBus, clock: ManualClock) -> AgentMonitor:
    return AgentMonitor(bus, clock)


def presence(
    clock: ManualClock, ahead_s: int = 0, version: str = VERSION
) -> task_pb2.RunnerPresence:
    message = task_pb2.RunnerPresence(
        runner_id="r1", boot_id="b", pool="local", host_name="box", version=version
    )
    message.sent_at.FromSeconds(int(clock.now().timestamp()) + ahead_s)
    return message


async def look(
    bus: InMemoryBus, agents: AgentMonitor, **probes: Callable[[], Awaitable[str]]
) -> list[Finding]:
    return await Diagnosis(bus, agents, probes, VERSION).run()


async def test_an_installation_in_order_has_only_good_findings(
    bus: InMemoryBus, agents: AgentMonitor, clock: ManualClock
) -> None:
    agents.handle_presence(presence(clock))

    async def probe() -> str:
        return "fine"

    findings = await look(bus, agents, store=probe)

    assert {finding.result for finding in findings} == {Result.OK}
    assert notifications(findings, "store") == [(Result.OK, "fine")]
    assert notifications(findings, "agents") == [(Result.OK, "1 connected")]


async def test_a_bus_that_is_away_is_reported(bus: InMemoryBus, agents: AgentMonitor) -> None:
    bus.broker.stop()

    ((result, text),) = notifications(await look(bus, agents), "bus")

    assert result is Result.BAD
    assert "nats" in text


async def test_a_probe_that_fails_says_why(bus: InMemoryBus, agents: AgentMonitor) -> None:
    async def probe() -> str:
        raise UnavailableError("S3 at http://s3:8333 cannot be reached")

    findings = await look(bus, agents, store=probe)

    assert notifications(findings, "store") == [
        (Result.BAD, "S3 at http://s3:8333 cannot be reached")
    ]


async def test_without_agents_no_trial_can_start(bus: InMemoryBus, agents: AgentMonitor) -> None:
    assert notifications(await look(bus, agents), "agents")[0][0] is Result.BAD


async def test_an_agent_of_another_version_is_reported(
    bus: InMemoryBus, agents: AgentMonitor, clock: ManualClock
) -> None:
    agents.handle_presence(presence(clock, version="3.0"))

    ((result, text),) = notifications(await look(bus, agents), "agent r1")

    assert result is Result.BAD
    assert "3.0" in text


@pytest.mark.parametrize(("ahead_s", "word"), [(30, "30.0 s ahead"), (-30, "30.0 s behind")])
async def test_a_clock_that_differs_is_reported(
    bus: InMemoryBus, agents: AgentMonitor, clock: ManualClock, ahead_s: int, word: str
) -> None:
    agents.handle_presence(presence(clock, ahead_s))

    ((result, text),) = notifications(await look(bus, agents), "agent r1")

    assert result is Result.BAD
    assert word in text


async def test_a_draining_agent_is_worth_a_note(
    bus: InMemoryBus, agents: AgentMonitor, clock: ManualClock
) -> None:
    draining = presence(clock)
    draining.draining = True
    agents.handle_presence(draining)

    assert notifications(await look(bus, agents), "agent r1")[0][0] is Result.NOTE


def test_missing_streams_and_replicas_are_reported() -> None:
    facts = [
        StreamFacts("EXPERIMENTS", 1, 10, 3, 1, 0),
        StreamFacts("INBOX", 200_000, 10, 1, 0, 0),
        StreamFacts("TASKS", 0, 0, 1, 0, 0),
    ]

    found = {finding.check: finding for finding in stream_findings(facts)}

    assert {check: finding.result for check, finding in found.items()} == {
        "stream EXPERIMENTS": Result.BAD,
        "stream INBOX": Result.NOTE,
        "stream TASKS": Result.OK,
        "stream LOGS": Result.BAD,
        "stream POOLS": Result.BAD,
    }
    assert "1 of 3 copies" in found["stream EXPERIMENTS"].explanation
