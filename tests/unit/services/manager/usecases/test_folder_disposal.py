"""Disk of deleted experiments: given back in the background, after restarts and kills, too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from svc_common.messaging.memory import InMemoryBus
from svc_manager.adapters.experiment_folders import LocalFolders
from svc_manager.usecases.deletions import Deletions
from tests.support import wait
from tests.unit.services.manager.world import (
    PATIENCE_S,
    InMemoryListeners,
    World,
    manager_on,
    world_on,
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def stopped(world: World, trials: int) -> tuple[str, Path]:
    """Return id and folder of a stopped experiment with folders of trials."""
    experiment_id = await world.create()
    await world.experiments.stop(experiment_id)
    folder = world.folder / "experiments" / experiment_id
    for number in range(trials):
        (folder / "trials" / f"t{number}" / ".nni").mkdir(parents=True)
        (folder / "trials" / f"t{number}" / "stdout").write_text("output")
    return experiment_id, folder


@asynccontextmanager
async def running(deletions: Deletions) -> AsyncIterator[None]:
    """Run the background work of deletions until the block ends."""
    work = asyncio.create_task(deletions.run())
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait.until, condition, PATIENCE_S)


def left(world: World) -> list[str]:
    """Return the entries of the folder of experiments."""
    return [place.name for place in (world.folder / "experiments").iterdir()]


async def test_experiment_is_gone_before_its_disk_is_given_back(world: World) -> None:
    experiment_id, folder = await stopped(world, 3)

    remaining = await world.experiments.delete(experiment_id, "d1")

    assert remaining
    assert not folder.exists()
    assert await world.bus.events.last(experiment_id) is None
    async with running(world.manager.deletions):
        await until(lambda: world.manager.deletions._disposal.remaining(experiment_id) == 0)
    assert not left(world)
    assert await world.experiments.delete(experiment_id, "d1") == 0


async def test_next_manager_gives_back_what_a_killed_one_left(world: World) -> None:
    experiment_id, _ = await stopped(world, 3)
    await world.experiments.delete(experiment_id, "d1")
    assert len(left(world)) == 1

    async with (
        manager_on(world.bus, world.folder, InMemoryListeners()) as next_manager,
        running(next_manager.deletions),
    ):
        await until(lambda: not left(world))

    assert left(world) == []


async def test_deletion_goes_on_when_its_caller_is_cancelled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id, folder = await stopped(world, 1)
    entered, go_on = asyncio.Event(), asyncio.Event()
    rename = LocalFolders.rename_of

    async def slow(self: LocalFolders, directory: Path, experiment_id: str, new: Path) -> bool:
        entered.set()
        await go_on.wait()
        return await rename(self, directory, experiment_id, new)

    monkeypatch.setattr(LocalFolders, "rename_of", slow)
    caller = asyncio.create_task(world.experiments.delete(experiment_id, "d1"))
    await entered.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()

    await world.experiments.delete(experiment_id, "d1")

    assert not folder.exists()
    assert await world.bus.events.last(experiment_id) is None


async def test_deletion_that_a_kill_interrupted_is_completed_at_the_next_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id, folder = await stopped(world, 1)

    async def killed(*_: object) -> bool:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolders, "rename_of", killed)
        with pytest.raises(RuntimeError, match="killed"):
            await world.manager.deletions._remover.delete(
                experiment_id, str(folder), (await last(world, experiment_id))
            )
    assert folder.exists()

    async with (
        manager_on(world.bus, world.folder, InMemoryListeners()) as next_manager,
        running(next_manager.deletions),
    ):
        await until(lambda: not left(world))

    assert await world.bus.events.last(experiment_id) is None


async def last(world: World, experiment_id: str) -> int:
    found = await world.bus.events.last(experiment_id)
    assert found is not None
    return found.sequence


async def test_folder_of_another_experiment_is_left_alone(world: World) -> None:
    _, other = await stopped(world, 1)
    new = other.with_name(".deleted-x")

    assert not await LocalFolders().rename_of(other, "another", new)

    assert other.exists()


async def test_cancelled_removal_ends_after_the_current_trial(world: World) -> None:
    _, folder = await stopped(world, 5)
    began, go_on = threading.Event(), threading.Event()

    def hold(remaining: int) -> None:
        assert remaining == 5, "it goes on after it was cancelled"
        began.set()
        assert go_on.wait(PATIENCE_S)

    removal = asyncio.create_task(LocalFolders().dispose(folder, hold))
    await asyncio.to_thread(began.wait, PATIENCE_S)
    removal.cancel()
    with suppress(asyncio.CancelledError):
        await removal
    go_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()

    assert len(list((folder / "trials").iterdir())) == 4
