"""Stand-in of an SSH connection: forwards Unix sockets in a folder to ports of this machine."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from svc_common.tasks import wait_first
from svc_trial_runner.adapters.forwarded_sockets import CURRENT_NAME
from svc_trial_runner.agent_file import BUS_SOCKET, MANAGER_SOCKET

Accept: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Forward:
    """Forward with a subfolder for each connection; a cut leaves the sockets, as sshd does.

    Args:
        folder: with a short path; exists.
        bus: port of the bus.
        manager: port of the manager.
    """

    def __init__(self, folder: Path, bus: int, manager: int) -> None:
        self.folder = folder
        self._ports = {BUS_SOCKET: bus, MANAGER_SOCKET: manager}
        self._count = 0
        self._servers: list[asyncio.Server] = []
        self._pipes: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Open the sockets of a new connection and name its folder."""
        self._count += 1
        name = f"c{self._count}"
        (self.folder / name).mkdir(mode=0o700)
        for socket, port in self._ports.items():
            path = self.folder / name / socket
            self._servers.append(await asyncio.start_unix_server(self._accept(port), path))
        draft = self.folder / f"{CURRENT_NAME}.new"
        draft.write_text(name)
        draft.replace(self.folder / CURRENT_NAME)

    async def cut(self) -> None:
        """Close all connections; the files of the sockets stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    def _accept(self, port: int) -> Accept:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._pipes.add(task)
            try:
                await _join(reader, writer, port)
            finally:
                self._pipes.discard(task)

        return accepted


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Pass bytes both ways until one side ends; then close both."""
    writers = [writer]
    try:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writers.append(back)
        await wait_first(_pipe(reader, back), _pipe(there, writer))
    except OSError:
        pass  # nothing listens there, or one side has broken off
    finally:
        for one in writers:
            one.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(64 * 1024):
        writer.write(data)
        await writer.drain()
