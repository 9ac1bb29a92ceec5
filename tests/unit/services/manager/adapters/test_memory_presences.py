from svc_common.clock import ManualClock
from svc_manager.adapters.memory_presences import InMemoryPresences


async def test_a_presence_expires_with_the_clock() -> None:
    clock = ManualClock()
    presences = InMemoryPresences(clock)
    await presences.keep({"r1": b"old"}, 10.0)
    await presences.keep({"r2": b"new"}, 20.0)

    clock.advance(15.0)

    assert await presences.all() == {"r2": b"new"}


async def test_a_forgotten_presence_is_gone_at_once() -> None:
    presences = InMemoryPresences(ManualClock())
    await presences.keep({"r1": b"x"}, 10.0)

    await presences.forget("r1")
    await presences.forget("r1")

    assert await presences.all() == {}
