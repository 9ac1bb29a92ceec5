"""Streams of a version whose bus had no accounts are there after an upgrade."""

import asyncio
from pathlib import Path

from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.permissions import manager_user, users_block
from svc_standalone.commands import Plan, Ports, bus_command
from tests.support.servers import NatsServer, nats_server


async def test_logs_written_before_the_accounts_are_read_after_the_upgrade(tmp_path: Path) -> None:
    folder = tmp_path / "bus"
    async with asyncio.timeout(60):
        with nats_server(folder) as older:
            async with NatsBus(NatsSettings(older.url)) as bus:
                await bus.events.append("e", b"batch", expected_sequence=0, epoch=1, append_id="a")
        (tmp_path / "jetstream").symlink_to(folder / "store")

        bus_command(Plan(tmp_path, Ports(1, 2, 3, 4, 5, 6), version="4", token="t"))
        newer = NatsServer(folder, more=users_block([(manager_user(), "m")]))
        newer.start()
        try:
            settings = NatsSettings(newer.url, user="manager", password="m")
            async with NatsBus(settings) as bus:
                read = [message.payload async for message in bus.events.read("e")]
        finally:
            newer.stop()

    assert read == [b"batch"]
