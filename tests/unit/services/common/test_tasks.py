import asyncio

import pytest

from svc_common.tasks import StoppedError, TaskOwner, result_unless, wait_first


async def test_failure_is_reported_and_other_tasks_continue() -> None:
    failures: list[tuple[str, BaseException]] = []
    reported = asyncio.Event()

    def on_failure(name: str, error: BaseException) -> None:
        failures.append((name, error))
        reported.set()

    async def fail() -> None:
        raise ValueError("no")

    owner = TaskOwner(on_failure)
    sibling = owner.start(_forever(), "sibling")
    owner.start(fail(), "broken")
    await reported.wait()

    assert [(name, str(error)) for name, error in failures] == [("broken", "no")]
    assert not sibling.done()
    await owner.aclose()


async def _forever() -> None:
    await asyncio.Event().wait()


async def test_close_cancels_and_waits() -> None:
    cleaned = asyncio.Event()

    async def work() -> None:
        try:
            await _forever()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    owner = TaskOwner(lambda _name, _error: None)
    owner.start(work(), "work")
    await asyncio.sleep(0)

    await owner.aclose()
    await owner.aclose()

    assert cleaned.is_set()
    assert len(owner) == 0


async def test_nothing_starts_after_the_close() -> None:
    owner = TaskOwner(lambda _name, _error: None)
    await owner.aclose()

    with pytest.raises(RuntimeError, match="after its owner was closed"):
        owner.start(_forever(), "late")


async def test_drain_waits_for_tasks_that_end_by_themselves() -> None:
    ended: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0)
        ended.append(1)

    owner = TaskOwner(lambda _name, _error: None)
    for number in range(3):
        owner.start(work(), f"work {number}")

    await owner.drain()

    assert ended == [1, 1, 1]


class Cleanup:
    """Work that waits until it is cancelled, then records its clean-up."""

    def __init__(self) -> None:
        self.done = False

    async def run(self) -> None:
        try:
            await _forever()
        finally:
            await asyncio.sleep(0)
            self.done = True


async def test_first_wait_that_completes_ends_the_others() -> None:
    event, other = asyncio.Event(), Cleanup()
    waiting = asyncio.ensure_future(wait_first(event.wait(), other.run()))
    await asyncio.sleep(0)
    assert not waiting.done()

    event.set()
    await asyncio.wait_for(waiting, 10)

    assert other.done


async def test_waits_end_with_their_caller() -> None:
    one, other = Cleanup(), Cleanup()
    waiting = asyncio.ensure_future(wait_first(one.run(), other.run()))
    await asyncio.sleep(0.0)
    await asyncio.sleep(0.0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert one.done
    assert other.done


async def test_error_of_the_first_wait_is_raised() -> None:
    other = Cleanup()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await wait_first(other.run(), fail())

    assert other.done


async def test_shielded_future_goes_on() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    await wait_first(asyncio.shield(future), asyncio.sleep(0))

    assert not future.done()


async def test_result_comes_before_the_stop() -> None:
    stop = Cleanup()

    async def work() -> str:
        await asyncio.sleep(0)
        return "result"

    assert await result_unless(stop.run(), work()) == "result"
    assert stop.done


async def test_stop_cancels_the_work() -> None:
    stop, work = asyncio.Event(), Cleanup()
    waiting = asyncio.ensure_future(result_unless(stop.wait(), work.run()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    stop.set()
    with pytest.raises(StoppedError):
        await asyncio.wait_for(waiting, 10)

    assert work.done


async def test_result_wins_over_a_stop_at_the_same_time() -> None:
    loop = asyncio.get_running_loop()
    work: asyncio.Future[int] = loop.create_future()
    stop: asyncio.Future[None] = loop.create_future()
    stop.set_result(None)
    work.set_result(7)

    assert await result_unless(stop, work) == 7


async def test_error_of_the_stop_is_raised() -> None:
    work = Cleanup()

    async def fail() -> None:
        raise ValueError("no stop")

    with pytest.raises(ValueError, match="no stop"):
        await result_unless(fail(), work.run())
