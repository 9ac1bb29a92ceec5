"""Two servers on loopback that greet by name, in place of bus and manager behind forwards."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

from svc_trial_runner.fleet.ports import InstallationEndpoints

_Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]


def _greeter(word: bytes) -> _Handler:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(word)
        writer.write_eof()
        await writer.drain()
        writer.close()

    return greet


@asynccontextmanager
async def open_greeters() -> AsyncIterator[InstallationEndpoints]:
    """Yield the addresses of the two servers."""
    bus = await asyncio.start_server(_greeter(b"bus"), "127.0.0.1", 0)
    manager = await asyncio.start_server(_greeter(b"manager"), "127.0.0.1", 0)
    ports = [one.sockets[0].getsockname()[1] for one in (bus, manager)]
    try:
        yield InstallationEndpoints(f"nats://127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}")
    finally:
        bus.close()
        manager.close()


async def greetings(folder: str) -> list[str]:
    """Return what the sockets of the current connection in a folder of forwards greet with."""
    current = Path(folder) / (Path(folder) / "current").read_text()
    words = []
    for name in ("bus.sock", "manager.sock"):
        reader, writer = await asyncio.open_unix_connection(current / name)
        words.append((await reader.read()).decode())
        writer.close()
    return words
