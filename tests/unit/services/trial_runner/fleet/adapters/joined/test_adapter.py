"""Tests of the platform of agents that people start."""

import asyncio
from pathlib import Path

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.joined.adapter import JoinedAdapter
from svc_trial_runner.fleet.adapters.joined.machines import MachineFile
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentPhase,
    PlatformAgent,
    PlatformSection,
)
from svc_trial_runner.fleet.domain.invitations import JoinedMachine
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    FrontEndpoint,
    InstallationEndpoints,
)
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.local_platforms import NoBundles

ENDPOINT = FrontEndpoint("10.0.0.1:8081", "PEM")


class OpenedFront(NoFront):
    """Front that counts how often it was opened."""

    def __init__(self) -> None:
        self.opened = 0

    async def open(self) -> FrontEndpoint:
        """Count; return an address."""
        self.opened += 1
        return ENDPOINT


def adapter(folder: Path, front: NoFront | None = None) -> JoinedAdapter:
    return JoinedAdapter(
        AdapterContext(
            INSTALLATION,
            POOL,
            PlatformSection("joined", {}),
            InstallationEndpoints("nats://127.0.0.1:9", "127.0.0.1:9"),
            NoBundles(),
            folder / "joined",
            front or NoFront(),
        )
    )


def enrol(folder: Path, number: int, slots: int = 2) -> AgentName:
    MachineFile(folder / "joined").put(
        JoinedMachine(f"machine-{number}", number, slots, f"host-{number}", "id-1")
    )
    return agent_name(number)


async def test_section_has_no_problem(tmp_path: Path) -> None:
    assert await adapter(tmp_path).check() == []


async def test_front_is_opened_at_the_preparation(tmp_path: Path) -> None:
    front = OpenedFront()

    await adapter(tmp_path, front).prepare()

    assert front.opened == 1


async def test_enrolled_machines_are_its_agents(tmp_path: Path) -> None:
    name = enrol(tmp_path, 3)
    opened = adapter(tmp_path)

    assert await opened.agents() == [PlatformAgent(name, AgentPhase.RUNNING, "host-3", slots=2)]
    assert await opened.capacity() == 1


async def test_agents_that_were_ended_are_listed_no_more(tmp_path: Path) -> None:
    first, second = enrol(tmp_path, 1), enrol(tmp_path, 2)
    opened = adapter(tmp_path)

    await opened.terminate([first])

    assert [agent.name for agent in await opened.agents()] == [second]
    await opened.clean()
    assert await opened.agents() == []
    await opened.aclose()


async def test_orders_to_launch_fail_for_ever(tmp_path: Path) -> None:
    failures = await adapter(tmp_path).launch([agent_order(agent_name(1))])

    assert [(failure.name, failure.permanent) for failure in failures] == [(agent_name(1), True)]


async def test_wait_has_no_end(tmp_path: Path) -> None:
    waiting = asyncio.create_task(adapter(tmp_path).wait_changed())
    await asyncio.sleep(0)
    is_waiting = not waiting.done()
    waiting.cancel()
    await asyncio.wait({waiting})

    assert is_waiting
