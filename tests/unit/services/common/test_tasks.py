import asyncio

import pytest

from svc_common.tasks import TaskOwner


async def test_failure_is_told_and_siblings_live_on() -> None:
    failures: list[tuple[str, BaseException]] = []
    told = asyncio.Event()

    def on_failure(name: str, error: BaseException) -> None:
        failures.append((name, error))
        told.set()

    async def fail() -> None:
        raise ValueError("no")

    owner = TaskOwner(on_failure)
    sibling = owner.start(_forever(), "sibling")
    owner.start(fail(), "broken")
    await told.wait()

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
