import asyncio

import pytest

from svc_common.errors import UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.actors.inbox_reader import TAKE_LIMIT_BYTES, InboxReader


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_messages_are_taken_in_order_and_once() -> None:
    async with InMemoryBus() as bus:
        wakes: list[int] = []
        reader = InboxReader(bus.inbox, "exp", lambda: wakes.append(1))
        reader.start(0)
        for number in range(3):
            await bus.inbox.publish("exp", "r1", b"%d" % number, message_id=str(number))
        await turns()

        taken = [message.payload for message in reader.take()]

        assert taken == [b"0", b"1", b"2"]
        assert reader.take() == []
        assert wakes
        await reader.aclose()


async def test_too_much_at_once_is_given_in_parts() -> None:
    async with InMemoryBus() as bus:
        wake = asyncio.Event()
        reader = InboxReader(bus.inbox, "exp", wake.set)
        reader.start(0)
        for number in range(4):
            payload = bytes(TAKE_LIMIT_BYTES // 2)
            await bus.inbox.publish("exp", "r1", payload, message_id=str(number))
        await turns()

        first = reader.take()
        wake.clear()
        second = reader.take()

        assert (len(first), len(second)) == (2, 2)
        assert not wake.is_set()
        await reader.aclose()
        await reader.aclose()


async def test_a_failed_read_wakes_the_actor_and_is_raised_by_take() -> None:
    bus = InMemoryBus()
    wake = asyncio.Event()
    reader = InboxReader(bus.inbox, "exp", wake.set)
    await bus.aclose()

    reader.start(0)
    await asyncio.wait_for(wake.wait(), 10)

    with pytest.raises(UnavailableError):
        reader.take()
    await reader.aclose()
