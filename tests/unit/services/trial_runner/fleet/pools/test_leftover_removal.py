"""Removal of leftovers from in-memory platforms."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from svc_trial_runner.fleet.adapters.memory import InMemoryPlatform, InMemoryPlatformAdapter
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.domain.needs import PoolPlatform
from svc_trial_runner.fleet.pools import leftover_removal
from svc_trial_runner.fleet.pools.leftover_removal import LeftoverRemoval
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.fleet_platforms import InMemoryCredentials, InMemoryPlatforms
from tests.support.fleet_pools import INSTALLATION

LIVE = AgentName(INSTALLATION, "exp-live", 1)
OLD = AgentName(INSTALLATION, "exp-old", 4)
FOREIGN = AgentName("zzzzzzzz", "exp-old", 4)


@dataclass
class World:
    """Platform with agents of a live pool, of an ended one, and of another installation."""

    platform: InMemoryPlatform = field(default_factory=InMemoryPlatform)
    credentials: InMemoryCredentials = field(default_factory=InMemoryCredentials)
    resumed: list[set[str]] = field(default_factory=list)
    """Pools that are there from a later question on, by question."""
    asked: int = 0

    def __post_init__(self) -> None:
        self.opener = InMemoryPlatforms(INSTALLATION, {"slurm": self.platform})
        self.removal = LeftoverRemoval(self.opener, self.credentials, self.living_pools)
        for name in (LIVE, OLD, FOREIGN):
            self.platform.set_phase(name, AgentPhase.RUNNING)

    async def living_pools(self) -> Collection[str]:
        self.asked += 1
        return {"exp-live"}.union(*self.resumed[: self.asked])

    async def clean(self, *, dry_run: bool = False) -> list[Leftover]:
        section = PoolPlatform("slurm", {})
        return await self.removal.clean("check-1", "slurm", section, dry_run=dry_run)


@pytest.fixture
async def world() -> World:
    return World()


async def test_what_no_pool_owns_is_removed_and_the_rest_is_named(world: World) -> None:
    await world.credentials.issue(OLD)

    found = await world.clean()

    assert found == [
        Leftover("exp-live", (str(LIVE),), in_use=True),
        Leftover("exp-old", (str(OLD),), removed=True),
    ]
    assert set(world.platform.agents) == {LIVE, FOREIGN}
    assert world.credentials.valid == {}
    assert world.opener.forgotten == ["exp-old/slurm"]


async def test_dry_run_removes_nothing(world: World) -> None:
    found = await world.clean(dry_run=True)

    assert [(one.pool, one.in_use, one.removed) for one in found] == [
        ("exp-live", True, False),
        ("exp-old", False, False),
    ]
    assert set(world.platform.agents) == {LIVE, OLD, FOREIGN}
    assert world.opener.forgotten == []


async def test_platform_that_cannot_be_reached_loses_nothing(world: World) -> None:
    world.platform.failure = PlatformError("no route to host")

    with pytest.raises(PlatformError, match="no route to host"):
        await world.clean()

    assert set(world.platform.agents) == {LIVE, OLD, FOREIGN}


async def test_pool_that_is_there_again_before_its_turn_is_left_alone(world: World) -> None:
    again = AgentName(INSTALLATION, "exp-again", 1)
    world.platform.set_phase(again, AgentPhase.RUNNING)
    world.resumed = [set(), {"exp-again"}]

    found = await world.clean()

    assert [(one.pool, one.in_use, one.removed) for one in found] == [
        ("exp-again", True, False),
        ("exp-live", True, False),
        ("exp-old", False, True),
    ]
    assert set(world.platform.agents) == {LIVE, again, FOREIGN}


async def test_pool_that_comes_during_its_removal_waits_for_the_end(world: World) -> None:
    world.credentials.may_revoke.clear()
    cleaning = asyncio.create_task(world.clean())
    await world.credentials.revoking.wait()

    waiting = asyncio.create_task(world.removal.wait_removed("exp-old"))
    await world.removal.wait_removed("exp-other")

    assert not waiting.done()
    world.credentials.may_revoke.set()
    await waiting
    assert OLD not in world.platform.agents
    await cleaning


async def test_adapter_that_does_not_close_holds_up_no_pool(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_adapter: InMemoryPlatformAdapter) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", hang)
    monkeypatch.setattr(leftover_removal, "CLOSE_LIMIT_S", 0.0)

    async with asyncio.timeout(30):
        await world.clean()
        await world.removal.wait_removed("exp-old")

    assert set(world.platform.agents) == {LIVE, FOREIGN}


@pytest.mark.parametrize("failure", [None, PlatformError("no route to host")])
async def test_every_adapter_that_was_opened_is_closed(
    world: World, monkeypatch: pytest.MonkeyPatch, failure: PlatformError | None
) -> None:
    closed = []

    async def close(adapter: InMemoryPlatformAdapter) -> None:
        closed.append(adapter)

    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", close)
    world.platform.failure = failure

    with suppress(PlatformError):
        await world.clean()

    assert len(closed) == len(world.opener.opened) == (2 if failure is None else 1)


@pytest.mark.parametrize("dry_run", [False, True])
async def test_rest_of_a_platform_is_cleaned_unless_nothing_is_to_be_removed(
    world: World, monkeypatch: pytest.MonkeyPatch, *, dry_run: bool
) -> None:
    cleaned = []

    async def clean_rest(adapter: InMemoryPlatformAdapter) -> None:
        cleaned.append(adapter)

    monkeypatch.setattr(InMemoryPlatformAdapter, "clean_rest", clean_rest)

    await world.clean(dry_run=dry_run)

    assert len(cleaned) == (not dry_run)


@pytest.mark.parametrize(("marked", "opened"), [("0-slurm", "0-slurm"), ("", "slurm")])
async def test_leftover_is_removed_under_the_key_of_its_section(
    world: World, monkeypatch: pytest.MonkeyPatch, marked: str, opened: str
) -> None:
    async def leftovers(_adapter: InMemoryPlatformAdapter) -> list[Leftover]:
        return [Leftover("exp-old", (str(OLD),), key=marked)]

    monkeypatch.setattr(InMemoryPlatformAdapter, "leftovers", leftovers)

    (left,) = await world.clean()

    assert left.removed
    assert world.opener.opened == ["slurm", opened]
    assert world.opener.forgotten == [f"exp-old/{opened}"]
