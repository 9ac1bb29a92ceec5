"""Room of the bus: what a real nats-server needs at its first and later starts."""

from __future__ import annotations

from pathlib import Path

from nni_wire.folders import BUS_ROOM_BYTES, BUS_START_BYTES
from svc_common.messaging.bus_disk import disk_trouble
from svc_common.messaging.nats_bus import LOG_LINES_LIMIT_BYTES, NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from tests.support.faulty_disks import faulty_disk
from tests.support.servers import NatsServer

_MEBIBYTE = 1024 * 1024


async def streams(server: NatsServer, folder: Path | None = None) -> list[str]:
    """Open the bus, which makes its streams; return their names."""
    async with NatsBus(NatsSettings(server.url, folder=folder)) as bus:
        assert bool(bus.disk_trouble) is (folder is not None)
        return [stream.name for stream in await bus.streams()]


async def test_streams_are_not_counted_twice_at_later_starts(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    server.room = f", max_file_store: {LOG_LINES_LIMIT_BYTES + _MEBIBYTE}"
    server.start()
    try:
        first = await streams(server)
        assert await streams(server) == first
        server.kill()
        server.start()

        assert await streams(server) == first
    finally:
        server.stop()


async def test_the_bus_starts_on_a_small_disk_first_and_later(tmp_path: Path) -> None:
    folder = tmp_path / "nats" / "store"
    with faulty_disk(tmp_path / "image", folder, 8) as disk:
        server = NatsServer(tmp_path / "nats")
        server.room = ", max_file_store: 1TB"
        disk.fill()
        with (folder / ".ballast").open("r+b") as ballast:
            ballast.truncate((folder / ".ballast").stat().st_size - BUS_START_BYTES)
        try:
            server.start()
            first = await streams(server, folder)
            server.stop()
            server.start()

            assert await streams(server, folder) == first
            assert len(first) == 5
            assert "the bus's disk is full: 0 MB are free" in disk_trouble(folder, BUS_ROOM_BYTES)
        finally:
            server.stop()
