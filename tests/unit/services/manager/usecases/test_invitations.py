"""Tests of invitations to pools over the in-memory bus."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from nni_proto.runner.v1 import invitation_service_pb2, pool_pb2
from svc_common import subjects
from svc_common.clock import ManualClock
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_manager.usecases.invitations import Invitations

POOL = "exp-1"
FRONT = invitation_service_pb2.PoolFront(
    pool=POOL, address="10.0.0.1:8081", authority_sha256="a" * 64
)


class World:
    """Bus with one open pool, and the use cases."""

    def __init__(self) -> None:
        self.bus = InMemoryBus(InMemoryBroker())
        self.clock = ManualClock(datetime(2026, 11, 27, tzinfo=UTC))
        self.invitations = Invitations(self.bus.last_values, self.clock)

    async def open_pool(self, *, closed: bool = False) -> None:
        """Publish a need of the pool."""
        need = pool_pb2.PoolNeed(pool=POOL, closed=closed)
        await self.bus.last_values.publish(
            subjects.pool_need_subject(POOL), need.SerializeToString()
        )

    async def stored(self) -> list[invitation_service_pb2.Invitation]:
        """Return the invitations on the bus."""
        values = await self.bus.last_values.read(subjects.pool_invitations_subject(POOL))
        message = invitation_service_pb2.PoolInvitations.FromString(values[-1].payload)
        return list(message.invitations)

    @asynccontextmanager
    async def fleet(self, front: invitation_service_pb2.PoolFront = FRONT) -> AsyncIterator[None]:
        """Answer each change of the invitations like a fleet, with this front."""

        async def answer() -> None:
            subject = subjects.pool_invitations_subject(POOL)
            async with aclosing(self.bus.last_values.follow(subject)) as values:
                async for value in values:
                    read = invitation_service_pb2.PoolInvitations.FromString(value.payload)
                    reply = invitation_service_pb2.PoolFront()
                    reply.CopyFrom(front)
                    reply.invitation_ids.extend(one.id for one in read.invitations)
                    await self.bus.last_values.publish(
                        subjects.pool_front_subject(POOL), reply.SerializeToString()
                    )

        answering = asyncio.create_task(answer())
        try:
            yield
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)


async def test_word_has_secret_and_fingerprint_and_only_its_hash_is_stored() -> None:
    world = World()
    await world.open_pool()
    async with world.fleet():
        made = await world.invitations.invite(POOL, use_limit=3, validity=timedelta(minutes=5))

    kind, secret, fingerprint = made.word.split(".")
    assert (kind, fingerprint, made.address) == ("nni1", "a" * 64, "10.0.0.1:8081")
    [stored] = await world.stored()
    assert stored.sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(stored)
    assert stored.use_limit == 3
    assert stored.expires_at.ToSeconds() - world.clock.now().timestamp() == 300
    assert secret not in repr(made)


async def test_invitations_are_listed_without_hashes_until_they_expire() -> None:
    world = World()
    await world.open_pool()
    async with world.fleet():
        made = await world.invitations.invite(POOL, validity=timedelta(minutes=5))

    [listed] = await world.invitations.valid(POOL)
    assert (listed.id, listed.sha256) == (made.invitation.id, "")
    world.clock.advance(300)
    assert await world.invitations.valid(POOL) == []


async def test_expired_invitations_are_dropped_by_the_next_one() -> None:
    world = World()
    await world.open_pool()
    async with world.fleet():
        await world.invitations.invite(POOL, validity=timedelta(minutes=5))
        world.clock.advance(300)
        second = await world.invitations.invite(POOL)

    assert [one.id for one in await world.stored()] == [second.invitation.id]


async def test_one_invitation_is_revoked_or_all_are() -> None:
    world = World()
    await world.open_pool()
    async with world.fleet():
        first, second, third = [await world.invitations.invite(POOL) for _ in range(3)]

        ended = await world.invitations.revoke(POOL, [second.invitation.id])

        assert [one.id for one in ended] == [second.invitation.id]
        rest = [one.id for one in await world.stored()]
        assert rest == [first.invitation.id, third.invitation.id]
        assert len(await world.invitations.revoke(POOL)) == 2
        assert await world.stored() == []


async def test_managers_that_change_invitations_at_once_lose_none() -> None:
    world = World()
    await world.open_pool()
    other = Invitations(world.bus.last_values, world.clock)
    async with world.fleet():
        revoked = await world.invitations.invite(POOL)

        first, second, _ = await asyncio.gather(
            world.invitations.invite(POOL),
            other.invite(POOL),
            other.revoke(POOL, [revoked.invitation.id]),
        )

    assert {one.id for one in await world.stored()} == {first.invitation.id, second.invitation.id}


async def test_unknown_invitation_cannot_be_revoked() -> None:
    world = World()

    with pytest.raises(NotFoundError, match="00000000"):
        await world.invitations.revoke(POOL, ["00000000"])


async def test_front_that_cannot_be_opened_leaves_no_invitation() -> None:
    world = World()
    await world.open_pool()
    broken = invitation_service_pb2.PoolFront(pool=POOL, reason="no port", remedy="set one")
    async with world.fleet(broken):
        with pytest.raises(FailedPreconditionError, match="no port; set one"):
            await world.invitations.invite(POOL)

    assert await world.stored() == []


async def test_fleet_that_does_not_answer_leaves_no_invitation() -> None:
    world = World()
    await world.open_pool()
    hasty = Invitations(world.bus.last_values, world.clock, timedelta(0))

    with pytest.raises(UnavailableError, match="log of the fleet"):
        await hasty.invite(POOL)

    assert await world.stored() == []


async def test_pool_must_exist_and_be_open() -> None:
    world = World()

    with pytest.raises(NotFoundError, match=POOL):
        await world.invitations.invite(POOL)
    await world.open_pool(closed=True)
    with pytest.raises(FailedPreconditionError, match="has ended"):
        await world.invitations.invite(POOL)


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        (pool_pb2.PoolDefinition(pool=POOL, removed=True), "is being removed"),
        (pool_pb2.PoolDefinition(pool=POOL, draining=True), "drains"),
    ],
)
async def test_pool_that_takes_no_more_agents_has_no_invitation(
    definition: pool_pb2.PoolDefinition, words: str
) -> None:
    world = World()
    subject = subjects.pool_definition_subject(POOL)
    await world.bus.last_values.publish(subject, definition.SerializeToString())

    with pytest.raises(FailedPreconditionError, match=words):
        await world.invitations.invite(POOL)


@pytest.mark.parametrize("uses", [-1, 1_001])
async def test_number_of_uses_is_limited(uses: int) -> None:
    with pytest.raises(InvalidArgumentError, match="use_limit must be 1 to 1000"):
        await World().invitations.invite(POOL, use_limit=uses)


@pytest.mark.parametrize("validity", [timedelta(0), timedelta(days=31)])
async def test_validity_is_limited(validity: timedelta) -> None:
    with pytest.raises(InvalidArgumentError, match="validity must be"):
        await World().invitations.invite(POOL, validity=validity)


async def test_front_is_that_of_the_installation_as_it_was_published_last() -> None:
    world = World()
    before = await world.invitations.front()
    for address in ("10.0.0.7:8081", "10.0.0.8:8081"):
        front = invitation_service_pb2.PoolFront(address=address, authority_sha256="ab12")
        subject = subjects.pool_front_subject("local")
        await world.bus.last_values.publish(subject, front.SerializeToString())

    found = await world.invitations.front()

    assert before.address == ""
    assert (found.address, found.authority_sha256) == ("10.0.0.8:8081", "ab12")
