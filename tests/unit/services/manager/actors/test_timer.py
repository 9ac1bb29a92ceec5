import asyncio

from svc_common.clock import ManualClock
from svc_manager.actors.timer import Timer


def ms(clock: ManualClock) -> int:
    return int(clock.now().timestamp() * 1000)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_it_rings_once_when_the_moment_has_passed() -> None:
    clock, rings = ManualClock(), []
    timer = Timer(clock, lambda: rings.append(ms(clock)))
    moment = ms(clock) + 1000

    await timer.set(moment)
    await turns()
    clock.advance(0.9)
    await turns()
    assert rings == []
    clock.advance(0.2)
    await turns()

    assert len(rings) == 1
    assert rings[0] >= moment


async def test_setting_it_anew_replaces_the_moment_and_none_silences_it() -> None:
    clock, rings = ManualClock(), []
    timer = Timer(clock, lambda: rings.append(1))

    await timer.set(ms(clock) + 1000)
    await turns()
    await timer.set(ms(clock) + 5000)
    await turns()
    clock.advance(2)
    await turns()
    assert rings == []
    await timer.set(None)
    clock.advance(10)
    await turns()

    assert rings == []


async def test_the_same_moment_keeps_the_timer() -> None:
    clock = ManualClock()
    timer = Timer(clock, lambda: None)
    moment = ms(clock) + 1000
    await timer.set(moment)
    await turns()

    await timer.set(moment + 1)
    await turns()

    assert clock.sleepers == 1
    await timer.aclose()
    await timer.aclose()
