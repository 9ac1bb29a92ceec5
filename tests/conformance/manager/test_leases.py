"""Conformance of every `Leases`: one owner at a time, and growing epochs."""

import asyncio

from svc_manager.domain.lease import Lease
from tests.conformance.manager.conftest import RENEWABLE_S, TTL_S, LeaseWorld

LONG_S = 60.0


async def test_free_lease_is_given_and_shown(lease_world: LeaseWorld, unique: str) -> None:
    lease = await lease_world.leases.acquire(unique, "a", LONG_S)

    assert lease == Lease(unique, "a", 1)
    assert await lease_world.leases.holder(unique) == lease
    assert await lease_world.leases.holder(f"{unique}-other") is None


async def test_held_lease_is_not_given_to_another(lease_world: LeaseWorld, unique: str) -> None:
    held = await lease_world.leases.acquire(unique, "a", LONG_S)

    assert await lease_world.leases.acquire(unique, "b", LONG_S) is None
    assert await lease_world.leases.holder(unique) == held


async def test_asking_again_gives_the_same_lease(lease_world: LeaseWorld, unique: str) -> None:
    first = await lease_world.leases.acquire(unique, "manager 1", LONG_S)

    assert await lease_world.leases.acquire(unique, "manager 1", LONG_S) == first


async def test_of_many_who_ask_at_once_one_gets_it(lease_world: LeaseWorld, unique: str) -> None:
    answers = await asyncio.gather(
        *(lease_world.leases.acquire(unique, f"m{number}", LONG_S) for number in range(20))
    )

    (lease,) = [answer for answer in answers if answer is not None]
    assert await lease_world.leases.holder(unique) == lease


async def test_next_owner_has_a_larger_epoch(lease_world: LeaseWorld, unique: str) -> None:
    leases = lease_world.leases
    first = await leases.acquire(unique, "a", LONG_S)
    assert first is not None
    await leases.release(first)

    second = await leases.acquire(unique, "b", LONG_S)

    assert second == Lease(unique, "b", first.epoch + 1)


async def test_expired_owner_cannot_renew_and_does_not_harm_its_successor(
    lease_world: LeaseWorld, unique: str
) -> None:
    leases = lease_world.leases
    stale = await leases.acquire(unique, "a", TTL_S)
    assert stale is not None
    await lease_world.expired(unique)
    assert await leases.renew([stale], LONG_S) == [stale]
    successor = await leases.acquire(unique, "b", LONG_S)

    lost = await leases.renew([stale], LONG_S)
    await leases.release(stale)

    assert lost == [stale]
    assert await leases.holder(unique) == successor
    assert successor == Lease(unique, "b", stale.epoch + 1)


async def test_owner_that_comes_back_after_expiry_starts_a_new_epoch(
    lease_world: LeaseWorld, unique: str
) -> None:
    leases = lease_world.leases
    first = await leases.acquire(unique, "a", TTL_S)
    await lease_world.expired(unique)

    again = await leases.acquire(unique, "a", LONG_S)

    assert first is not None
    assert again == Lease(unique, "a", first.epoch + 1)
    assert await leases.renew([first], LONG_S) == [first]


async def test_a_renewed_lease_expires_later(lease_world: LeaseWorld, unique: str) -> None:
    leases = lease_world.leases
    long = await leases.acquire(f"{unique}-long", "a", RENEWABLE_S)
    assert long is not None
    assert await leases.renew([long], LONG_S) == []
    short = await leases.acquire(f"{unique}-short", "a", RENEWABLE_S)
    assert short is not None

    await lease_world.expired(f"{unique}-short")

    assert await leases.holder(f"{unique}-long") == long


async def test_epochs_go_on_from_what_the_logs_know(lease_world: LeaseWorld, unique: str) -> None:
    leases = lease_world.leases
    after_a_loss = await leases.acquire(unique, "a", LONG_S, above=41)

    assert after_a_loss == Lease(unique, "a", 42)
    assert await leases.acquire(unique, "a", LONG_S, above=41) == after_a_loss
    assert await leases.acquire(unique, "a", LONG_S, above=42) == Lease(unique, "a", 43)


async def test_renewal_of_many_tells_which_are_lost(lease_world: LeaseWorld, unique: str) -> None:
    leases = lease_world.leases
    kept = [await leases.acquire(f"{unique}-{number}", "a", LONG_S) for number in range(3)]
    lost = await leases.acquire(f"{unique}-lost", "a", TTL_S)
    assert lost is not None
    await lease_world.expired(lost.name)

    asked = [kept[0], lost, kept[1], Lease(f"{unique}-never", "a", 1), kept[2]]
    gone = await leases.renew([lease for lease in asked if lease is not None], LONG_S)

    assert [lease.name for lease in gone] == [lost.name, f"{unique}-never"]
    assert await leases.renew([], LONG_S) == []


async def test_all_leases_that_are_held_are_given(lease_world: LeaseWorld, unique: str) -> None:
    leases = lease_world.leases
    await leases.acquire(f"{unique}-short", "a", TTL_S)
    held = await leases.acquire(f"{unique}-held", "a host:1 host:2", LONG_S)
    free = await leases.acquire(f"{unique}-free", "b", LONG_S)
    assert free is not None
    await leases.release(free)
    await lease_world.expired(f"{unique}-short")

    found = await leases.holders()

    own = {name: lease for name, lease in found.items() if name.startswith(f"{unique}-")}
    assert own == {f"{unique}-held": held}
