"""Requests for checks of platforms over the in-memory bus; the answers are published here."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_wire.values import to_value
from svc_common import subjects
from svc_common.clock import SystemClock
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_common.pool_secrets import POOL_SECRETS_FOLDER
from svc_manager.adapters.pool_secret_files import PoolSecretFiles
from svc_manager.usecases.platform_checks import (
    LEFT_AFTER,
    FleetPlatformChecker,
    NoPlatformChecker,
)

LIMIT_S = 30.0
SLURM = config_pb2.TrainingServiceConfig(platform="slurm", options=to_value({"partition": "a"}))
REMOTE = config_pb2.TrainingServiceConfig(platform="remote", options=to_value({}))
POOL = "check-c1"


class World:
    """Bus and secrets, with a checker on them."""

    def __init__(self, folder: Path, limit: timedelta = timedelta(seconds=LIMIT_S)) -> None:
        self.folder = folder
        self.bus = InMemoryBus(InMemoryBroker())
        self.secrets = PoolSecretFiles(folder)
        self.checker = FleetPlatformChecker(
            self.bus.last_values, self.secrets, SystemClock(), lambda: "c1", limit
        )
        self.seen: list[dict[str, str]] = []

    async def answer(self, *problems: pool_pb2.PoolProblem) -> pool_pb2.PoolCheck:
        """Do what the fleet does: wait for the request, read the secrets, answer."""
        async for value in self.bus.last_values.follow(subjects.pool_check_subject(POOL)):
            request = pool_pb2.PoolCheck.FromString(value.payload)
            self.seen = [
                await self.secrets.read(one.secrets_id) if one.secrets_id else {}
                for one in request.platforms
            ]
            for check_id in ("older", request.check_id):
                answer = pool_pb2.PoolProblems(check_id=check_id, problems=problems)
                subject = subjects.pool_problems_subject(POOL)
                await self.bus.last_values.publish(subject, answer.SerializeToString())
            return request
        raise AssertionError("the bus was closed")

    async def check(
        self, *sections: config_pb2.TrainingServiceConfig, problems: list[pool_pb2.PoolProblem]
    ) -> list[str]:
        secrets = [{"password": "hush"}, *({} for _ in sections[1:])]
        async with asyncio.timeout(LIMIT_S):
            warnings, _ = await asyncio.gather(
                self.checker.check(sections, secrets, "trainingService"), self.answer(*problems)
            )
        return warnings

    async def nothing_is_left(self) -> bool:
        values = await self.bus.last_values.read(subjects.ALL_POOLS)
        return not values and not list((self.folder / POOL_SECRETS_FOLDER).iterdir())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_accepted_sections_have_no_warning_and_leave_nothing(world: World) -> None:
    assert await world.check(SLURM, REMOTE, problems=[]) == []

    assert world.seen == [{"password": "hush"}, {}]
    assert await world.nothing_is_left()


async def test_refusal_names_the_field_of_the_users_file(world: World) -> None:
    problem = pool_pb2.PoolProblem(
        field="partition", rule="does not exist", value="a", remedy="see sinfo", permanent=True
    )

    with pytest.raises(InvalidArgumentError) as caught:
        await world.check(SLURM, problems=[problem])

    assert caught.value.message == ("trainingService.partition does not exist, got 'a'; see sinfo")
    assert await world.nothing_is_left()


async def test_all_refusals_of_several_platforms_are_named(world: World) -> None:
    problems = [
        pool_pb2.PoolProblem(platform_index=1, rule="cannot be reached", permanent=True),
        pool_pb2.PoolProblem(field="qos", rule="is unknown", permanent=True),
        pool_pb2.PoolProblem(field="host", rule="is slow"),
    ]

    with pytest.raises(InvalidArgumentError) as caught:
        await world.check(SLURM, REMOTE, problems=problems)

    text = caught.value.message
    assert "trainingService[1] (remote) cannot be reached" in text
    assert "also: trainingService[0].qos is unknown" in text
    assert "slow" not in text


async def test_what_may_be_right_is_a_warning(world: World) -> None:
    problem = pool_pb2.PoolProblem(
        field="machineList[1].host", rule="cannot be reached", value="b", remedy="try ssh b"
    )

    assert await world.check(REMOTE, problems=[problem]) == [
        "trainingService.machineList[1].host cannot be reached, got 'b' (try ssh b)"
    ]


async def test_fleet_that_does_not_answer_is_a_warning(tmp_path: Path) -> None:
    world = World(tmp_path, timedelta(milliseconds=1))

    (warning,) = await world.checker.check([SLURM], [{"password": "hush"}], "trainingService")

    assert "were not checked: the fleet did not answer" in warning
    assert await world.nothing_is_left()


async def test_check_of_a_killed_manager_is_deleted_with_its_secrets(world: World) -> None:
    await world.secrets.write("check-old", {"password": "hush"})
    await world.secrets.write("check-new", {"password": "hush"})
    for pool, age in (("check-old", LEFT_AFTER * 2), ("check-new", LEFT_AFTER / 2)):
        request = pool_pb2.PoolCheck(check_id="c0", pool=pool)
        request.deadline.FromDatetime(datetime.now(UTC) - age)
        subject = subjects.pool_check_subject(pool)
        await world.bus.last_values.publish(subject, request.SerializeToString())

    await world.check(SLURM, problems=[])

    (left,) = await world.bus.last_values.read(subjects.ALL_POOLS)
    assert subjects.pool_of_subject(left.subject) == "check-new"
    assert await world.secrets.read("check-old") == {}
    assert await world.secrets.read("check-new") == {"password": "hush"}


async def test_this_machine_and_pools_need_no_check(world: World) -> None:
    local = config_pb2.TrainingServiceConfig(platform="local")

    assert await world.checker.check([local], [{}], "trainingService") == []
    assert await NoPlatformChecker().check([SLURM], [{}], "trainingService") == []
    assert await world.bus.last_values.read(subjects.ALL_POOLS) == []


async def test_cleaning_is_asked_of_the_fleet_with_the_secrets(world: World) -> None:
    async with asyncio.timeout(LIMIT_S):
        problem = pool_pb2.PoolProblem(rule="cannot be reached")
        done, request = await asyncio.gather(
            world.checker.clean([SLURM], [{"password": "hush"}], dry_run=True),
            world.answer(problem),
        )

    assert request.cleaning.dry_run
    assert world.seen == [{"password": "hush"}]
    assert list(done.problems) == ["trainingService (slurm) cannot be reached"]
    assert await world.nothing_is_left()


async def test_installation_without_a_fleet_has_nothing_to_clean() -> None:
    with pytest.raises(FailedPreconditionError, match="no fleet"):
        await NoPlatformChecker().clean([SLURM], [{}], dry_run=False)
