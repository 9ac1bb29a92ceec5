"""Connections of a loop to routed host names."""

import asyncio
import os
import tempfile
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_common.errors import FailedPreconditionError
from svc_common.socket_loop import SocketLoop, route_to_socket

HOST = "echo.socket.invalid"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folder with a short path, as addresses of sockets have to be."""
    with tempfile.TemporaryDirectory(prefix="nni-") as name:
        yield Path(name)


def run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=SocketLoop) as runner:
        runner.run(work)


async def greeting(port: int, host: str = HOST) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    line = await reader.readline()
    writer.close()
    return line


def greeter(text: bytes) -> Any:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        writer.close()

    return greet


def test_routed_host_is_the_socket_of_its_last_route(folder: Path) -> None:
    async def work() -> None:
        for name in ("one", "two"):
            path = folder / name
            async with await asyncio.start_unix_server(greeter(name.encode() + b"\n"), path):
                route_to_socket(HOST, path)

                assert await greeting(4222) == name.encode() + b"\n"

    run(work())


def test_missing_socket_is_an_error_of_the_system(folder: Path) -> None:
    async def work() -> None:
        route_to_socket(HOST, folder / "gone")
        with pytest.raises(OSError, match=os.strerror(2)):
            await greeting(4222)

    run(work())


def test_other_hosts_are_connected_by_tcp(folder: Path) -> None:
    async def work() -> None:
        async with await asyncio.start_server(greeter(b"tcp\n"), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            route_to_socket(HOST, folder / "gone")

            assert await greeting(port, "127.0.0.1") == b"tcp\n"

    run(work())


async def test_other_loops_are_refused_by_name(folder: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="must be a SocketLoop"):
        route_to_socket(HOST, folder / "bus.sock")
