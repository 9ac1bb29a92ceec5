"""Checks of platforms over the in-memory bus and in-memory platforms."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from nni_proto.runner.v1 import pool_pb2
from nni_wire.values import to_value
from svc_common import subjects
from svc_common.clock import Clock, ManualClock, SystemClock
from svc_common.errors import UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_trial_runner.fleet.adapters.memory import InMemoryPlatform, InMemoryPlatformAdapter
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase, PlatformProblem
from svc_trial_runner.fleet.pools.leftover_removal import LeftoverRemoval
from svc_trial_runner.fleet.pools.platform_checks import PlatformChecks
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.fleet_platforms import InMemoryCredentials, InMemoryPlatforms
from tests.support.fleet_pools import INSTALLATION

LIMIT_S = 30.0


@dataclass
class World:
    """Bus and platforms, on which checks run."""

    slurm: InMemoryPlatform = field(default_factory=InMemoryPlatform)
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        self.bus = InMemoryBus(InMemoryBroker())
        self.opener = InMemoryPlatforms(INSTALLATION, {"slurm": self.slurm})

    async def living_pools(self) -> set[str]:
        return set()

    @asynccontextmanager
    async def checks(self) -> AsyncIterator[None]:
        """Run the service that answers requests."""
        removal = LeftoverRemoval(self.opener, InMemoryCredentials(), self.living_pools)
        checks = PlatformChecks(self.bus.last_values, self.opener, self.clock, removal)
        running = asyncio.ensure_future(checks.run())
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await checks.aclose()

    async def request(
        self,
        pool: str,
        *platforms: str,
        expired: bool = False,
        cleaning: pool_pb2.PlatformCleaning | None = None,
    ) -> None:
        message = pool_pb2.PoolCheck(check_id=f"of-{pool}", pool=pool, cleaning=cleaning)
        for platform in platforms:
            message.platforms.add(platform=platform, options=to_value({}))
        message.deadline.FromDatetime(datetime.now(UTC) + timedelta(hours=-1 if expired else 1))
        subject = subjects.pool_check_subject(pool)
        await self.bus.last_values.publish(subject, message.SerializeToString())

    async def problems(self, pool: str) -> list[pool_pb2.PoolProblem]:
        """Return the problems in the answer for a pool."""
        return list((await self.answer(pool)).problems)

    async def answer(self, pool: str) -> pool_pb2.PoolProblems:
        """Return the answer for a pool."""
        async with asyncio.timeout(LIMIT_S):
            subject = subjects.pool_problems_subject(pool)
            async for value in self.bus.last_values.follow(subject):
                message = pool_pb2.PoolProblems.FromString(value.payload)
                assert message.check_id == f"of-{pool}"
                return message
        raise AssertionError("the bus was closed")


@pytest.fixture
async def world() -> World:
    return World()


async def test_request_that_came_before_the_fleet_is_answered(world: World) -> None:
    await world.request("check-1", "slurm")

    async with world.checks():
        assert await world.problems("check-1") == []

    assert world.opener.opened == ["0-slurm"]
    assert world.slurm.launches == []


async def test_broken_rules_are_answered_with_the_number_of_the_platform(world: World) -> None:
    world.slurm.problems = [PlatformProblem("partition", "does not exist", "gpu", "see sinfo")]
    async with world.checks():
        await world.request("check-1", "unknown", "slurm")
        found = await world.problems("check-1")

    assert [(one.platform_index, one.rule, one.permanent) for one in found] == [
        (0, "no platform unknown", True),
        (1, "does not exist", True),
    ]


@pytest.mark.parametrize("error", [PlatformError("it is away", "wait"), RuntimeError("broken")])
async def test_platform_that_raises_is_a_problem(world: World, error: Exception) -> None:
    world.slurm.failure = error
    async with world.checks():
        await world.request("check-1", "slurm")
        (problem,) = await world.problems("check-1")

    assert str(error) in problem.rule
    assert problem.field == ""
    assert problem.remedy == ("wait" if isinstance(error, PlatformError) else "")


async def test_expired_and_damaged_requests_open_no_platform(world: World) -> None:
    async with world.checks():
        await world.request("check-1", "slurm", expired=True)
        await world.bus.last_values.publish(subjects.pool_check_subject("check-2"), b"\xff\xff")
        await world.request("check-3", "slurm")
        await world.problems("check-3")

    assert world.opener.opened == ["0-slurm"]


@pytest.mark.parametrize("cleaning", [None, pool_pb2.PlatformCleaning(dry_run=False)])
async def test_fleet_whose_clock_is_ahead_says_so_for_each_platform(
    world: World, cleaning: pool_pb2.PlatformCleaning | None
) -> None:
    async with world.checks():
        await world.request("check-1", "slurm", "slurm", expired=True, cleaning=cleaning)
        answer = await world.answer("check-1")

    assert [one.platform_index for one in answer.problems] == [0, 1]
    assert "had expired 1 h ago by the clock of the fleet" in answer.problems[0].rule
    assert world.opener.opened == []


async def test_folder_of_a_check_is_removed(world: World) -> None:
    async with world.checks():
        await world.request("check-1", "slurm")
        await world.problems("check-1")
        await world.request("check-2", "slurm")
        await world.problems("check-2")

    assert "check-1" in world.opener.forgotten


async def test_cleaning_answers_what_was_removed_and_which_platform_was_not_reached(
    world: World,
) -> None:
    name = AgentName(INSTALLATION, "exp-old", 1)
    world.slurm.set_phase(name, AgentPhase.RUNNING)

    async with world.checks():
        await world.request(
            "check-1", "unknown", "slurm", cleaning=pool_pb2.PlatformCleaning(dry_run=False)
        )
        answer = await world.answer("check-1")

    (problem,) = answer.problems
    (left,) = answer.leftovers
    assert (problem.platform_index, problem.rule) == (0, "no platform unknown")
    assert (left.platform_index, left.pool, left.removed) == (1, "exp-old", True)
    assert world.slurm.agents == {}


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        (TimeoutError(), "gave no answer within 60 s"),
        (UnavailableError("no bundle"), "no bundle"),
        (RuntimeError("x" * 2_000), "RuntimeError: " + "x" * 986),
    ],
)
async def test_platform_without_an_answer_may_be_there_later(
    world: World, error: Exception, rule: str
) -> None:
    world.opener.platforms["remote"] = InMemoryPlatform(failure=error)
    async with world.checks():
        await world.request("check-1", "slurm", "remote")
        (problem,) = await world.problems("check-1")

    assert (problem.platform_index, problem.rule, problem.permanent) == (1, rule, False)


@pytest.mark.parametrize(
    ("error", "rule", "permanent"),
    [
        (TimeoutError(), "was not cleaned within 300 s", False),
        (PlatformError("it is away", "wait"), "it is away", False),
        (RuntimeError("x" * 2_000), "RuntimeError: " + "x" * 986, True),
    ],
)
async def test_platform_that_cannot_be_cleaned_is_a_problem(
    world: World, error: Exception, rule: str, *, permanent: bool
) -> None:
    world.slurm.failure = error
    with capture_logs() as lines:
        async with world.checks():
            cleaning = pool_pb2.PlatformCleaning(dry_run=False)
            await world.request("check-1", "slurm", cleaning=cleaning)
            answer = await world.answer("check-1")

    (problem,) = answer.problems
    assert (problem.rule, problem.permanent) == (rule, permanent)
    logged = [(line["event"], line["platform"]) for line in lines if "platform" in line]
    assert logged == ([("cleaning failed", "slurm")] if permanent else [])
    assert list(answer.leftovers) == []
    assert world.opener.forgotten == ["check-1"]


async def test_machine_that_is_away_beside_another_refuses_nothing(world: World) -> None:
    world.slurm.capacity = 2
    world.slurm.problems = [PlatformProblem("host", "is away", permanent=False)]
    async with world.checks():
        await world.request("check-1", "slurm")
        (problem,) = await world.problems("check-1")

    assert (problem.rule, problem.permanent) == ("is away", False)


@pytest.mark.parametrize(("left_s", "opened"), [(-0.5, []), (0.0, []), (0.5, ["0-slurm"])])
async def test_request_is_answered_until_its_deadline(left_s: float, opened: list[str]) -> None:
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    world = World(clock=ManualClock(now))
    message = pool_pb2.PoolCheck(check_id="of-check-1", pool="check-1")
    message.platforms.add(platform="slurm", options=to_value({}))
    message.deadline.FromDatetime(now + timedelta(seconds=left_s))

    async with world.checks():
        subject = subjects.pool_check_subject("check-1")
        await world.bus.last_values.publish(subject, message.SerializeToString())
        found = await world.problems("check-1")

    assert world.opener.opened == opened
    assert len(found) == 1 - len(opened)


@pytest.mark.parametrize("failure", [None, PlatformError("it is away")])
async def test_adapter_of_a_check_is_closed(
    world: World, monkeypatch: pytest.MonkeyPatch, failure: PlatformError | None
) -> None:
    closed = []

    async def close(adapter: InMemoryPlatformAdapter) -> None:
        closed.append(adapter)

    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", close)
    world.slurm.failure = failure
    async with world.checks():
        await world.request("check-1", "slurm")
        await world.problems("check-1")

    assert len(closed) == 1


async def test_check_in_progress_ends_with_the_service(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(_adapter: InMemoryPlatformAdapter) -> list[PlatformProblem]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return []

    monkeypatch.setattr(InMemoryPlatformAdapter, "check", hang)
    async with asyncio.timeout(LIMIT_S), world.checks():
        await world.request("check-1", "slurm")
        await begun.wait()
        before = ended.is_set()

    assert not before
    assert ended.is_set()


async def test_answer_that_the_bus_does_not_take_is_logged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    async def refuse(_platforms: InMemoryPlatforms, _pool: str, _key: str = "") -> None:
        tried.set()
        await world.bus.aclose()

    monkeypatch.setattr(InMemoryPlatforms, "forget", refuse)
    with capture_logs() as lines:
        async with asyncio.timeout(LIMIT_S), world.checks():
            await world.request("check-1", "slurm")
            await tried.wait()
            for _ in range(5):  # turns of the loop
                await asyncio.sleep(0)

    (line,) = (one for one in lines if one["log_level"] == "error")
    assert (line["event"], line["task"]) == ("check failed", "check check-1")
