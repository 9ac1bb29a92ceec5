"""Fleet whose pools machines join, over the in-memory bus and the platform `joined`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from nni_proto.runner.v1 import pool_pb2
from svc_common.clock import SystemClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.subjects import pool_need_subject, pool_state_subject
from svc_trial_runner.enrolment import Enrolled
from svc_trial_runner.fleet.adapters.joined.adapter import JoinedAdapter
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.pools.enrolments import EnrolmentDependencies, Enrolments
from svc_trial_runner.fleet.pools.fleet import Fleet
from svc_trial_runner.fleet.pools.pool_controller import FleetDependencies
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    InstallationEndpoints,
    PlatformAdapter,
)
from tests.support.enrolment_stage import (
    INSTALLATION,
    POOL,
    VERSION,
    EnrolmentStage,
    enrolment_request,
    enrolment_stage,
)
from tests.support.local_platforms import NoBundles

pytest.importorskip("cryptography")

LIMIT_S = 30.0


class JoinedOnly:
    """`PlatformOpener` of the platform `joined` alone."""

    def __init__(self, stage: EnrolmentStage, folder: Path) -> None:
        self._stage = stage
        self._folder = folder

    async def open(
        self, pool: str, key: str, platform: str, options: Mapping[str, object], secrets_id: str
    ) -> PlatformAdapter:
        return JoinedAdapter(
            AdapterContext(
                INSTALLATION,
                pool,
                PlatformSection(platform, options),
                InstallationEndpoints("", ""),
                NoBundles(),
                self._folder / "pools" / pool / key,
                self._stage.front.of_platform(pool, key),
            )
        )

    async def forget(self, pool: str, key: str = "") -> None:
        """Do nothing."""


@asynccontextmanager
async def fleet(stage: EnrolmentStage, folder: Path) -> AsyncIterator[Enrolments]:
    """Run a fleet; yield its enrolments; at the end it is gone as if it were killed."""
    bus = InMemoryBus(stage.bus.broker)
    dependencies = EnrolmentDependencies(
        bus, stage.credentials, stage.front, stage.machines, stage.clock, VERSION
    )
    enrolments = Enrolments(dependencies)
    shared = FleetDependencies(
        INSTALLATION, bus, JoinedOnly(stage, folder), stage.credentials, SystemClock()
    )
    started = Fleet(shared, enrolments)
    running = asyncio.ensure_future(started.run())
    try:
        yield enrolments
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await started.aclose()


async def publish_need(stage: EnrolmentStage, sequence: int = 1, *, closed: bool = False) -> None:
    need = pool_pb2.PoolNeed(pool=POOL, closed=closed, log_sequence=sequence)
    await stage.bus.last_values.publish(pool_need_subject(POOL), need.SerializeToString())


async def agents(stage: EnrolmentStage, *expected: int, sequence: int = 1) -> pool_pb2.PoolState:
    """Return the first state of the pool with these agents that answers a need or a later one."""
    async with asyncio.timeout(LIMIT_S):
        async for value in stage.bus.last_values.follow(pool_state_subject(POOL)):
            state = pool_pb2.PoolState.FromString(value.payload)
            numbers = [int(one.name.rpartition("-")[2]) for one in state.agents]
            if numbers == list(expected) and state.log_sequence >= sequence:
                return state
    raise AssertionError("the bus was closed")


async def test_enrolled_machine_is_an_agent_of_the_pool(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        await publish_need(stage)
        async with fleet(stage, tmp_path) as enrolments:
            await agents(stage)

            answer = await enrolments.enrol(enrolment_request(word), "203.0.113.7")

            assert isinstance(answer, Enrolled)
            [agent] = (await agents(stage, 1)).agents
            assert (agent.platform, agent.slots, agent.machine) == ("joined", 2, "host-one")


async def test_killed_fleet_finds_its_agents_again_and_uses_no_number_twice(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite(use_limit=2)
        await publish_need(stage)
        async with fleet(stage, tmp_path) as enrolments:
            await agents(stage)
            await enrolments.enrol(enrolment_request(word, "one"), "203.0.113.7")
            await agents(stage, 1)
        async with fleet(stage, tmp_path) as enrolments:
            await publish_need(stage, 2)
            await agents(stage, 1, sequence=2)
            answer = await enrolments.enrol(enrolment_request(word, "two"), "203.0.113.8")

            assert isinstance(answer, Enrolled)
            assert answer.name.endswith("-2")
            await agents(stage, 1, 2)


async def test_closed_pool_ends_its_agents_and_their_credentials(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        await publish_need(stage)
        async with fleet(stage, tmp_path) as enrolments:
            await agents(stage)
            await enrolments.enrol(enrolment_request(word), "203.0.113.7")
            await agents(stage, 1)

            await publish_need(stage, 2, closed=True)

            state = await agents(stage, sequence=2)
            assert state.last_number == 1
            assert stage.credentials.valid == {}
