from svc_common.clock import ManualClock
from svc_manager.adapters.memory_leases import InMemoryLeases


async def test_a_lease_expires_with_the_clock() -> None:
    clock = ManualClock()
    leases = InMemoryLeases(clock)
    first = await leases.acquire("e1", "one", ttl_s=3.0)

    clock.advance(2.9)
    assert await leases.acquire("e1", "two", ttl_s=3.0) is None
    clock.advance(0.2)
    second = await leases.acquire("e1", "two", ttl_s=3.0)

    assert first is not None
    assert second is not None
    assert second.epoch == first.epoch + 1
    assert await leases.holders() == {"e1": second}


async def test_epochs_continue_above_those_of_the_log() -> None:
    leases = InMemoryLeases(ManualClock())

    lease = await leases.acquire("e1", "one", ttl_s=3.0, above=41)

    assert lease is not None
    assert lease.epoch == 42
