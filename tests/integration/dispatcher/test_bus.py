"""The dispatcher while the bus is killed."""

import asyncio
from pathlib import Path

from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from tests.integration.dispatcher.conftest import Dispatcher
from tests.support.scripted_manager import ScriptedManager, named
from tests.support.servers import NatsServer

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


async def test_killed_bus_costs_time_and_nothing_else(own_nats: NatsServer, tmp_path: Path) -> None:
    async with NatsBus(NatsSettings(own_nats.url, name="test")) as bus:
        dispatcher = Dispatcher(bus)
        dispatcher.start()
        manager = ScriptedManager(bus, "exp", tmp_path)
        reading = asyncio.create_task(manager.read_inbox())
        await manager.create(SPACE, tuner=named("Random"))
        await manager.generate(2)
        request = await manager.ask(1)

        await asyncio.to_thread(own_nats.kill)
        await bus.wait_connected(False)
        await asyncio.to_thread(own_nats.start)
        answer = await manager.answer(request)
        await manager.schedule(answer)
        await manager.generate(1)

        await dispatcher.stop()
        reading.cancel()

    ids = [
        item.parameter_id
        for message in manager.all("parameters_generated")
        for item in message.parameters
    ]
    assert sorted(set(ids)) == [0, 1, 2, 3]
    assert len(manager.all("algorithm_started")) == 1
