"""Removal of the pool of a deleted experiment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from nni_proto.runner.v1 import pool_pb2
from svc_common import subjects
from svc_common.messaging.memory import InMemoryBus
from svc_manager.adapters.pool_secret_files import PoolSecretFiles
from svc_manager.usecases.pool_removal import PoolRemover

POOL = "exp-ab12cd34"
PATIENCE_S = 60.0
"""Time limit for steps that take milliseconds on an idle machine."""


class Removals:
    """Pool with a need of sequence 7 and a secret, and its remover."""

    def __init__(self, bus: InMemoryBus, home: Path) -> None:
        self.bus = bus
        self.secrets = PoolSecretFiles(home)

    async def prepare(self) -> None:
        need = pool_pb2.PoolNeed(pool=POOL, closed=True, log_sequence=7)
        await self.bus.last_values.publish(
            subjects.pool_need_subject(POOL), need.SerializeToString()
        )
        await self.secrets.write(POOL, {"password": "one"})

    async def answer(self, *, cleaned: bool, log_sequence: int) -> None:
        """Publish a state as the fleet does."""
        state = pool_pb2.PoolState(pool=POOL, cleaned=cleaned, log_sequence=log_sequence)
        await self.bus.last_values.publish(
            subjects.pool_state_subject(POOL), state.SerializeToString()
        )

    async def remove(self, limit: timedelta = timedelta(seconds=PATIENCE_S)) -> None:
        await PoolRemover(self.bus.last_values, self.bus.tasks, self.secrets, limit).remove(
            "ab12cd34"
        )

    async def left(self) -> int:
        """Return the number of values and secrets that are left."""
        values = await self.bus.last_values.read(subjects.ALL_POOL_NEEDS)
        values += await self.bus.last_values.read(subjects.ALL_POOL_STATES)
        return len(values) + len(await self.secrets.read(POOL))


@pytest.fixture
async def removals(tmp_path: Path) -> AsyncIterator[Removals]:
    async with InMemoryBus() as bus:
        made = Removals(bus, tmp_path)
        await made.prepare()
        yield made


async def test_pool_that_no_fleet_knows_is_removed_at_once(removals: Removals) -> None:
    await removals.remove()

    assert await removals.left() == 0


async def test_secrets_stay_until_the_platforms_are_clean(removals: Removals) -> None:
    await removals.answer(cleaned=True, log_sequence=6)  # of a stop before the last resumption
    removing = asyncio.ensure_future(removals.remove())
    await asyncio.sleep(0)
    before = await removals.left()

    await removals.answer(cleaned=False, log_sequence=7)
    await removals.answer(cleaned=True, log_sequence=7)
    await removing

    assert (before, await removals.left()) == (3, 0)


async def test_pool_of_a_machine_that_is_gone_is_removed_after_a_time(removals: Removals) -> None:
    await removals.answer(cleaned=False, log_sequence=7)

    await removals.remove(limit=timedelta(0))

    assert await removals.left() == 0


async def test_removal_may_be_repeated(removals: Removals) -> None:
    await removals.remove()
    await removals.remove()

    assert await removals.left() == 0
