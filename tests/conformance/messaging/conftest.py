"""Fixtures that run the same tests on every implementation of the bus."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.ports import Bus
from tests.support.servers import NatsServer, nats_server

_numbers = itertools.count(1)


class Outage(Protocol):
    """Bus server that a test may stop and start again."""

    def start(self) -> None: ...

    def kill(self) -> None: ...


@dataclass
class World:
    """Bus server with a factory of its clients."""

    open_bus: Callable[[], Bus]
    outage: Outage
    id: str
    """Unique to a test, since the server may be shared."""


class BrokerOutage:
    def __init__(self, broker: InMemoryBroker) -> None:
        self._broker = broker

    def start(self) -> None:
        self._broker.start()

    def kill(self) -> None:
        self._broker.stop()


@pytest.fixture(params=["memory", "nats"])
async def world(request: pytest.FixtureRequest) -> World:
    """Return a server that must be left running."""
    number = f"t{next(_numbers)}"
    if request.param == "memory":
        broker = InMemoryBroker()
        return World(lambda: InMemoryBus(broker), BrokerOutage(broker), number)
    server: NatsServer = request.getfixturevalue("shared_nats")
    return World(lambda: NatsBus(NatsSettings(server.url)), server, number)


@pytest.fixture(params=["memory", "nats"])
async def fragile_world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Yield a server that the test may kill."""
    if request.param == "memory":
        broker = InMemoryBroker()
        yield World(lambda: InMemoryBus(broker), BrokerOutage(broker), "t")
        return
    with nats_server(tmp_path / "nats") as server:
        yield World(lambda: NatsBus(NatsSettings(server.url)), server, "t")


@pytest.fixture
async def bus(world: World) -> AsyncIterator[Bus]:
    async with asyncio.timeout(20), world.open_bus() as opened:
        yield opened


@pytest.fixture
def exp(world: World) -> str:
    return f"exp-{world.id}"
