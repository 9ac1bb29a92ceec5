"""State of the front over the in-memory bus."""

import asyncio
from contextlib import aclosing, suppress

from structlog.testing import capture_logs

from nni_proto.runner.v1 import invitation_service_pb2
from svc_common import subjects
from svc_common.clock import ManualClock, SystemClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_trial_runner.enrolment import authority_fingerprint
from svc_trial_runner.fleet.pools.front_publication import FrontPublication
from svc_trial_runner.fleet.ports import FrontEndpoint

LIMIT_S = 30.0
AUTHORITY = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


class SwitchedFront:
    """Front that a test opens and closes."""

    def __init__(self) -> None:
        self.endpoint: FrontEndpoint | None = None
        self.switched = asyncio.Event()

    async def wait_changed(self, known: FrontEndpoint | None) -> None:
        while self.endpoint == known:
            await self.switched.wait()
            self.switched.clear()

    def switch(self, endpoint: FrontEndpoint | None) -> None:
        self.endpoint = endpoint
        self.switched.set()


async def test_each_state_of_the_front_is_published() -> None:
    bus, front = InMemoryBus(InMemoryBroker()), SwitchedFront()
    publication = asyncio.ensure_future(
        FrontPublication(bus.last_values, front, SystemClock()).run()
    )
    found = []
    async with (
        asyncio.timeout(LIMIT_S),
        aclosing(bus.last_values.follow(subjects.pool_front_subject("local"))) as values,
    ):
        for endpoint in (FrontEndpoint("10.0.0.7:8081", AUTHORITY), None, None):
            value = await anext(values)
            found.append(invitation_service_pb2.PoolFront.FromString(value.payload))
            front.switch(endpoint)
            if len(found) == 3:
                break
    publication.cancel()
    with suppress(asyncio.CancelledError):
        await publication

    assert [one.address for one in found] == ["", "10.0.0.7:8081", ""]
    assert found[1].authority_sha256 == authority_fingerprint(AUTHORITY)


async def test_state_that_the_bus_does_not_take_is_logged() -> None:
    front, clock = SwitchedFront(), ManualClock()
    front.endpoint = FrontEndpoint("a" * 9_000_000, AUTHORITY)  # larger than a message
    publication = FrontPublication(InMemoryBus().last_values, front, clock)
    with capture_logs() as lines:
        running = asyncio.ensure_future(publication.run())
        async with asyncio.timeout(LIMIT_S):
            while not clock.sleepers:  # noqa: ASYNC110 - the clock has no event
                await asyncio.sleep(0)
    running.cancel()

    assert [line["event"] for line in lines] == ["state of the front not published"]


async def test_state_that_the_bus_does_not_take_is_published_after_five_seconds() -> None:
    bus, front, clock = InMemoryBus(), SwitchedFront(), ManualClock()
    subject = subjects.pool_front_subject("local")
    front.endpoint = FrontEndpoint("a" * 9_000_000, AUTHORITY)  # larger than a message
    publication = asyncio.ensure_future(FrontPublication(bus.last_values, front, clock).run())
    async with asyncio.timeout(LIMIT_S):
        while not clock.sleepers:  # noqa: ASYNC110 - the clock has no event
            await asyncio.sleep(0)
        front.endpoint = FrontEndpoint("10.0.0.7:8081", AUTHORITY)
        clock.advance(4.5)
        for _ in range(10):
            await asyncio.sleep(0)
        early = await bus.last_values.read(subject)
        clock.advance(0.5)
        async with aclosing(bus.last_values.follow(subject)) as values:
            value = await anext(values)
    publication.cancel()

    assert early == []
    assert invitation_service_pb2.PoolFront.FromString(value.payload).address == "10.0.0.7:8081"
