"""Pools of the installation over the in-memory bus; the fleet's answers are published here."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from nni_proto.runner.v1 import pool_pb2, pool_service_pb2
from nni_wire.values import from_value, to_value
from svc_common import subjects
from svc_common.clock import SystemClock
from svc_common.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from svc_common.messaging.memory import InMemoryBus, InMemoryLastValues
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_manager.adapters.pool_secret_files import PoolSecretFiles
from svc_manager.converters.agent_limits import Section
from svc_manager.usecases.pools import Pools

LIMIT_S = 30.0


@dataclass
class Checker:
    """`PlatformChecker` that remembers what it was asked, and may refuse."""

    asked: list[Sequence[Mapping[str, str]]] = field(default_factory=list)
    refusal: InvalidArgumentError | None = None

    async def check(
        self, sections: Sequence[Section], secrets: Sequence[Mapping[str, str]], field: str
    ) -> list[str]:
        del sections, field
        self.asked.append(secrets)
        if self.refusal is not None:
            raise self.refusal
        return []

    async def clean(
        self, sections: Sequence[Section], secrets: Sequence[Mapping[str, str]], *, dry_run: bool
    ) -> pool_service_pb2.CleanPlatformsResponse:
        self.asked.append(secrets)
        words = [f"{one.platform} {dry_run}" for one in sections]
        return pool_service_pb2.CleanPlatformsResponse(problems=words)


@dataclass
class World:
    """Bus, secrets and checker, with the use cases on them."""

    folder: Path
    limit: timedelta = timedelta(seconds=LIMIT_S)

    def __post_init__(self) -> None:
        self.bus = InMemoryBus(InMemoryBroker())
        self.secrets = PoolSecretFiles(self.folder)
        self.checker = Checker()
        self.pools = self.use_cases(self.limit)

    def use_cases(self, limit: timedelta) -> Pools:
        return Pools(
            self.bus.last_values,
            self.bus.tasks,
            self.secrets,
            self.checker,
            SystemClock(),
            ("local", "slurm", "remote", "pool"),
            limit,
        )

    def secret_files(self) -> list[Path]:
        return list(self.folder.glob("pool-secrets/*"))

    async def publish_need(self, experiment_id: str, *, closed: bool = False) -> None:
        need = pool_pb2.PoolNeed(
            pool="gpus", experiment_id=experiment_id, waiting_count=2, closed=closed
        )
        subject = subjects.pool_need_subject(f"exp-{experiment_id}")
        await self.bus.last_values.publish(subject, need.SerializeToString())

    async def publish_state(self, state: pool_pb2.PoolState) -> None:
        subject = subjects.pool_state_subject("gpus")
        await self.bus.last_values.publish(subject, state.SerializeToString())

    async def clean(self) -> None:
        """Do what the fleet does: wait until the pool is removed, then publish that it is clean."""
        follow = self.bus.last_values.follow(subjects.pool_definition_subject("gpus"))
        async for value in follow:
            definition = pool_pb2.PoolDefinition.FromString(value.payload)
            if definition.removed:
                state = pool_pb2.PoolState(cleaned=True, log_sequence=definition.revision)
                await self.publish_state(state)
                return


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def definition(
    name: str = "gpus", *, password: str = "", **options: object
) -> pool_pb2.PoolDefinition:
    message = pool_pb2.PoolDefinition(pool=name)
    if password:
        options["password"] = password
    message.platforms.add(platform="slurm", options=to_value({"partition": "a", **options}))
    return message


async def test_created_pool_is_published_without_secrets(world: World) -> None:
    created = await world.pools.create(definition(password="very-secret"))

    (value,) = await world.bus.last_values.read(subjects.pool_definition_subject("gpus"))
    assert b"very-secret" not in value.payload
    assert b"very-secret" not in created.SerializeToString()
    (platform,) = created.definition.platforms
    assert list(platform.secret_paths) == ["password"]
    assert await world.secrets.read(platform.secrets_id) == {"password": "very-secret"}
    assert world.checker.asked == [[{"password": "very-secret"}]]


async def test_limits_come_from_the_file_else_from_the_sections(world: World) -> None:
    wanted = definition(minAgents=1, maxAgents=4, idleTime="5s")
    wanted.limits.max_agents = 2
    wanted.limits.max_agent_time.FromSeconds(3600)

    limits = (await world.pools.create(wanted)).definition.limits

    assert (limits.min_agents, limits.max_agents, limits.idle.seconds) == (1, 2, 5)
    assert limits.max_agent_time.seconds == 3600


async def test_repeated_creation_returns_the_pool_and_another_one_is_refused(world: World) -> None:
    first = await world.pools.create(definition())

    assert await world.pools.create(definition()) == first
    with pytest.raises(AlreadyExistsError):
        await world.pools.create(definition(maxAgents=1))


@pytest.mark.parametrize("name", ["local", "exp-1", "check-1", "Gpus", "a_b", "-a", "", "a" * 41])
async def test_name_that_no_pool_may_have_is_refused(world: World, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="name must"):
        await world.pools.create(definition(name))


async def test_refusal_of_a_platform_leaves_nothing(world: World) -> None:
    world.checker.refusal = InvalidArgumentError("trainingService.partition", "does not exist")

    with pytest.raises(InvalidArgumentError, match="partition"):
        await world.pools.create(definition(password="x"))

    assert (await world.pools.page()).items == []
    assert world.secret_files() == []


async def test_limits_that_make_no_sense_are_refused(world: World) -> None:
    for name, values in (
        ("maxAgents", {"min_agents": 3, "max_agents": 2}),
        ("costPerAgentHour", {"max_cost": 1.0}),
        ("maxCost", {"max_cost": -1.0}),
        ("minAgents", {"min_agents": -1}),
        ("maxCost", {"max_cost": float("nan")}),
    ):
        wanted = definition()
        wanted.limits.MergeFrom(pool_pb2.PoolLimits(**values))
        with pytest.raises(InvalidArgumentError, match=name):
            await world.pools.create(wanted)


async def test_platforms_that_pools_cannot_have_are_refused(world: World) -> None:
    pool = pool_pb2.PoolDefinition(pool="gpus")
    pool.platforms.add(platform="pool")
    two = pool_pb2.PoolDefinition(pool="gpus")
    two.platforms.add(platform="local")
    two.platforms.add(platform="local")

    for wanted in (pool, two):
        with pytest.raises(InvalidArgumentError, match="trainingService"):
            await world.pools.create(wanted)


async def test_update_replaces_limits_and_secrets_and_keeps_the_pool_drained(world: World) -> None:
    created = await world.pools.create(definition(password="one"))
    await world.pools.drain("gpus")
    wanted = definition(password="two")
    wanted.limits.max_agents = 7

    updated = (await world.pools.update(wanted)).definition

    assert updated.limits.max_agents == 7
    assert updated.draining
    assert updated.revision > created.definition.revision
    assert updated.created_at == created.definition.created_at
    assert await world.secrets.read(updated.platforms[0].secrets_id) == {"password": "two"}
    assert len(world.secret_files()) == 1


async def test_only_changed_secrets_make_another_section_for_the_fleet(world: World) -> None:
    first = (await world.pools.create(definition(password="one"))).definition

    same = (await world.pools.update(definition(password="one"))).definition
    changed = (await world.pools.update(definition(password="two"))).definition
    repeated = (await world.pools.create(definition(password="two"))).definition

    assert same.platforms[0] == first.platforms[0]
    assert changed.platforms[0] != first.platforms[0]
    assert repeated == changed


async def test_update_without_a_secret_deletes_the_earlier_one(world: World) -> None:
    await world.pools.create(definition(password="one"))

    updated = (await world.pools.update(definition())).definition

    assert updated.platforms[0].secrets_id == ""
    assert world.secret_files() == []


async def test_drain_may_be_repeated_and_undone(world: World) -> None:
    await world.pools.create(definition())

    first = await world.pools.drain("gpus")
    assert first.definition.draining
    assert (await world.pools.drain("gpus")) == first
    assert not (await world.pools.drain("gpus", undo=True)).definition.draining


async def test_change_by_another_manager_at_the_same_time_is_kept(world: World) -> None:
    await world.pools.create(definition(password="one"))
    other = world.use_cases(world.limit)
    wanted = definition(password="two")
    wanted.limits.max_agents = 7

    await asyncio.gather(world.pools.update(wanted), other.drain("gpus"))

    found = (await world.pools.get("gpus")).definition
    assert (found.limits.max_agents, found.draining) == (7, True)
    assert await world.secrets.read(found.platforms[0].secrets_id) == {"password": "two"}
    assert len(world.secret_files()) == 1


async def test_pool_that_two_managers_create_has_the_secrets_of_the_first_one(world: World) -> None:
    other = world.use_cases(world.limit)

    first, second = await asyncio.gather(
        world.pools.create(definition(password="one")), other.create(definition(password="two"))
    )

    assert first == second
    (secrets_id,) = [one.secrets_id for one in first.definition.platforms]
    assert [path.stem for path in world.secret_files()] == [secrets_id]


async def test_removal_by_one_manager_spares_the_pool_that_another_one_has_made_again(
    world: World,
) -> None:
    await world.pools.create(definition())
    other = world.use_cases(world.limit)
    async with asyncio.timeout(LIMIT_S):
        removal = asyncio.create_task(world.pools.remove("gpus"))
        await wait_removed(world)
        subject = subjects.pool_definition_subject("gpus")
        await world.bus.last_values.delete(subject)
        made = await other.create(definition(maxAgents=2))
        # Later than both revisions, of which the first may be the larger one within a millisecond.
        await world.publish_state(pool_pb2.PoolState(cleaned=True, log_sequence=2**62))
        await removal

    assert (await other.get("gpus")).definition == made.definition


class DeletesThen(InMemoryLastValues):
    """Last values that let another manager act after the deletion of a subject."""

    def __init__(
        self, bus: InMemoryBus, subject: str, act: Callable[[], Awaitable[object]]
    ) -> None:
        super().__init__(bus)
        self._subject = subject
        self._act = act

    async def delete(self, subject: str, *, through_sequence: int = 0) -> None:
        await super().delete(subject, through_sequence=through_sequence)
        if subject == self._subject:
            await self._act()


async def test_removal_spares_the_secrets_of_a_pool_that_is_made_again_at_its_end(
    world: World,
) -> None:
    first = await world.pools.create(definition(password="one"))
    other = world.use_cases(world.limit)
    world.bus.last_values = DeletesThen(
        world.bus,
        subjects.pool_definition_subject("gpus"),
        lambda: other.create(definition(password="two")),
    )

    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(world.use_cases(world.limit).remove("gpus"), world.clean())

    (platform,) = (await other.get("gpus")).definition.platforms
    assert await world.secrets.read(platform.secrets_id) == {"password": "two"}
    assert await world.secrets.read(first.definition.platforms[0].secrets_id) == {}


@pytest.mark.parametrize(
    "subject",
    [subjects.pool_definition_subject("gpus"), subjects.pool_state_subject("gpus")],
    ids=["definition", "state"],
)
async def test_removal_spares_values_and_queue_of_a_pool_that_is_made_again_at_its_end(
    world: World, subject: str
) -> None:
    await world.pools.create(definition())
    values = world.bus.last_values
    kept = (
        subjects.pool_invitations_subject("gpus"),
        subjects.pool_front_subject("gpus"),
    )
    for one in kept:
        await values.publish(one, b"first")
    other = world.use_cases(world.limit)

    async def make_again() -> None:
        await other.create(definition())
        for one in (*kept, subjects.pool_state_subject("gpus")):
            await values.publish(one, b"")
        await world.bus.tasks.publish("gpus", b"task", message_id="1")

    world.bus.last_values = DeletesThen(world.bus, subject, make_again)
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(world.use_cases(world.limit).remove("gpus"), world.clean())

    for one in (*kept, subjects.pool_state_subject("gpus")):
        assert [value.payload for value in await values.read(one)] == [b""]
    assert len(world.bus.broker.tasks) == 1


async def wait_removed(world: World) -> None:
    """Wait until the pool is being removed."""
    follow = world.bus.last_values.follow(subjects.pool_definition_subject("gpus"))
    async for value in follow:
        if pool_pb2.PoolDefinition.FromString(value.payload).removed:
            return


async def test_unknown_pool_is_not_found(world: World) -> None:
    with pytest.raises(NotFoundError):
        await world.pools.get("gpus")
    with pytest.raises(NotFoundError):
        await world.pools.update(definition())
    with pytest.raises(NotFoundError):
        await world.pools.drain("gpus")
    with pytest.raises(NotFoundError):
        await world.pools.remove("gpus")
    with pytest.raises(InvalidArgumentError, match="nnictl pool create"):
        await world.pools.check_exists("gpus")


async def test_pool_in_use_is_not_removed_and_names_its_users(world: World) -> None:
    await world.pools.create(definition())
    await world.publish_need("one")
    await world.publish_need("two", closed=True)

    with pytest.raises(FailedPreconditionError, match=r"used by experiment one: .*--force"):
        await world.pools.remove("gpus")

    view = await world.pools.get("gpus")
    assert [(user.experiment_id, user.waiting_count) for user in view.users] == [("one", 2)]
    assert not view.definition.removed


@pytest.mark.parametrize("used", [False, True])
async def test_removed_pool_is_gone_with_its_secrets(world: World, used: bool) -> None:
    await world.pools.create(definition(password="x"))
    if used:
        await world.publish_need("one")

    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(world.pools.remove("gpus", force=used), world.clean())

    assert (await world.pools.page()).items == []
    assert await world.bus.last_values.read(subjects.pool_state_subject("gpus")) == []
    assert world.secret_files() == []


async def test_pool_that_is_not_clean_yet_stays_until_the_removal_is_repeated(world: World) -> None:
    await world.pools.create(definition())
    await world.publish_state(pool_pb2.PoolState(reason="slurm: the login node is away"))
    impatient = world.use_cases(timedelta(milliseconds=1))

    with pytest.raises(FailedPreconditionError, match=r"login node is away; repeat"):
        await impatient.remove("gpus")
    with pytest.raises(FailedPreconditionError, match="being removed"):
        await world.pools.create(definition())
    with pytest.raises(FailedPreconditionError, match="being removed"):
        await world.pools.update(definition())
    with pytest.raises(InvalidArgumentError, match="it has none"):
        await world.pools.check_exists("gpus")

    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(world.pools.remove("gpus"), world.clean())
    assert (await world.pools.page()).items == []


async def test_pool_that_is_made_again_has_a_later_revision(world: World) -> None:
    first = await world.pools.create(definition())
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(world.pools.remove("gpus"), world.clean())

    second = await world.pools.create(definition())

    assert second.definition.revision >= first.definition.revision


async def test_pools_are_listed_by_name_page_by_page(world: World) -> None:
    for name in ("b", "a", "c"):
        await world.pools.create(definition(name))

    first = await world.pools.page(page_size=2)
    second = await world.pools.page(page_size=2, page_token=first.next_token)

    assert [one.definition.pool for one in (*first.items, *second.items)] == ["a", "b", "c"]


async def test_view_has_state_and_time_of_the_agents(world: World) -> None:
    await world.pools.create(definition())
    state = pool_pb2.PoolState(pool="gpus", reason="busy")
    state.ended_agent_time.FromSeconds(7200)
    await world.publish_state(state)

    view = await world.pools.get("gpus")

    assert view.state.reason == "busy"
    assert view.used_agent_time.seconds == 7200
    assert from_value(view.definition.platforms[0].options) == {"partition": "a"}


async def test_texts_of_platforms_in_a_view_are_cut(world: World) -> None:
    await world.pools.create(definition())
    await world.publish_state(pool_pb2.PoolState(pool="gpus", reason="a" * 9_000))

    assert len((await world.pools.get("gpus")).state.reason) == 2_000


async def test_platforms_are_cleaned_without_secrets_in_their_sections(world: World) -> None:
    section = pool_pb2.PoolPlatform(platform="remote", options=to_value({"password": "hush"}))

    answer = await world.pools.clean_platforms([section], dry_run=True)

    assert list(answer.problems) == ["remote True"]
    assert world.checker.asked == [[{"password": "hush"}]]


@pytest.mark.parametrize("names", [[], ["pool-of-another"]])
async def test_only_known_platforms_are_cleaned(world: World, names: list[str]) -> None:
    sections = [pool_pb2.PoolPlatform(platform=name) for name in names]

    with pytest.raises(InvalidArgumentError, match=r"trainingService\.platform"):
        await world.pools.clean_platforms(sections, dry_run=True)
