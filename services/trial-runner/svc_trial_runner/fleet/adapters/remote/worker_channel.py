"""Folders of sockets on a worker, the watch for processes that end, and the relay of a login node.

This file is sent to the worker's Python with each call and has the standard library only. It prints
one JSON object per line.

A folder `/tmp/nni-<uid>-<key>` (0700) has one subfolder for each connection, in which the SSH
server makes `bus.sock` and `manager.sock`, and the file `current` with the name of the present one.
A cut connection leaves its sockets behind, and a second listener at the same path is refused, so
that each connection has a subfolder of its own. `$XDG_RUNTIME_DIR` is no place for it: it is
removed with the last login session of the user, and agents outlive sessions.

Where the SSH server refuses to listen on sockets it listens on ports of the loopback interface;
`relay` makes the sockets then, so that agents know one way only.

On a login node `listen` takes connections of other machines of the cluster, which an SSH server
does not unless `GatewayPorts` allows it. The server keeps the program of a connection that was cut
without a word for hours, and its port with it: the program ends unless its input says something.
"""

import asyncio
import errno
import json
import os
import secrets
import select
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Final

CURRENT: Final = "current"
BUS_SOCKET: Final = "bus.sock"
MANAGER_SOCKET: Final = "manager.sock"
_PATH_LIMIT_BYTES: Final = 107
"""Longest path of a socket on Linux, without the zero at its end."""
SILENCE_S: Final = 30.0
"""`listen` ends when its input was silent for so long."""
_PORT_S: Final = SILENCE_S + 5.0
"""Time for which `listen` waits for a port, which that of a cut connection may still have."""
_PORT_STEP_S: Final = 0.5
_BACKLOG: Final = 512
_CHUNK_BYTES: Final = 256 * 1024
_RENEW_S: Final = 6 * 3600.0
"""Cleaners of `/tmp` remove files that were not touched for days."""


def open_folder(key: str) -> dict[str, str]:
    """Create a key's socket folder, where paths are short, and a subfolder; return both."""
    error: OSError | None = None
    for parent in _parents():
        base = parent / f"nni-{os.getuid()}-{key}"
        name = f"c-{secrets.token_hex(4)}"
        if len(os.fsencode(base / name / MANAGER_SOCKET)) > _PATH_LIMIT_BYTES:
            continue
        try:
            _make_private(base)
            (base / name).mkdir(mode=0o700)
        except OSError as refusal:
            error = error or refusal
            continue
        return {"base": str(base), "name": name}
    raise error or OSError("no folder for sockets has a path that is short enough")


def publish(base: Path, name: str) -> None:
    """Make a socket subfolder the current one, and remove all others."""
    _make_private(base)
    draft = base / f".{name}"
    draft.write_text(name, "ascii")
    draft.replace(base / CURRENT)
    for path in base.iterdir():
        if path.name not in {CURRENT, name} and path.name.startswith(("c-", ".c-")):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def close_folder(key: str) -> None:
    """Remove this user's socket folder of a key below every possible parent; ignore errors."""
    for parent in _parents():
        base = parent / f"nni-{os.getuid()}-{key}"
        with suppress(OSError):
            if base.lstat().st_uid == os.getuid():
                _remove(base)


def watch(base: Path) -> None:
    """Read pids from stdin; print each when its process ends; touch the folder until stdin closes.

    The input has a line with the id of each process. The folder's files are kept young.
    """
    ids: dict[int, int] = {}
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    _print({"watching": True})
    renewed = time.monotonic()
    pending = b""
    while True:
        for descriptor, _ in poll.poll(_RENEW_S * 1000):
            if descriptor:
                poll.unregister(descriptor)
                os.close(descriptor)
                _print({"ended": ids.pop(descriptor)})
                continue
            data = os.read(0, 4096)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                _add(int(line), ids, poll)
        if time.monotonic() - renewed >= _RENEW_S:
            renewed = time.monotonic()
            for path in (base, *base.rglob("*")):
                with suppress(OSError):
                    os.utime(path, follow_symlinks=False)


def _add(process_id: int, ids: dict[int, int], poll: select.poll) -> None:
    try:
        descriptor = os.pidfd_open(process_id)
    except OSError:
        _print({"ended": process_id})
        return
    ids[descriptor] = process_id
    poll.register(descriptor, select.POLLIN)


async def relay(folder: Path, bus_port: int, manager_port: int) -> None:
    """Relay connections of Unix sockets to loopback ports until the input ends."""
    servers = [
        await asyncio.start_unix_server(_passing_to(port), folder / name)
        for name, port in ((BUS_SOCKET, bus_port), (MANAGER_SOCKET, manager_port))
    ]
    _print({"relaying": len(servers)})
    await asyncio.to_thread(lambda: [None for _ in iter(lambda: os.read(0, 4096), b"")])


async def listen(port: int, target: int, peers: list[str]) -> None:
    """Relay connections of other machines to a loopback port until the input ends or is silent.

    It ends with its input, or when that was silent for `SILENCE_S`.

    Args:
        port: to listen on; 0, and a port that stays taken: any free one.
        target: port of the loopback interface.
        peers: names or addresses of machines that are to reach this one.
    """
    listening = await _listening(port)
    server = await asyncio.start_server(_passing_to(target), sock=listening)
    port = server.sockets[0].getsockname()[1]
    _print({"address": address_towards(peers), "port": port})
    await asyncio.to_thread(_wait_for_silence)
    server.close()  # connections end with the program


async def _listening(port: int) -> socket.socket:
    """Return a socket that listens on all addresses; on any port if the given one stays taken."""
    deadline_s = time.monotonic() + _PORT_S
    while True:
        try:
            return _bound(port)
        except OSError:
            if port == 0:
                raise
            if time.monotonic() >= deadline_s:
                return _bound(0)
        await asyncio.sleep(_PORT_STEP_S)


def _bound(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)  # the system has no IPv6


def address_towards(peers: list[str]) -> str:
    """Return this machine's address on the way to a peer; empty: none of them has an address.

    A loopback address, by which a peer on this machine is reached, is the last choice.
    """
    found = ""
    for peer in peers:
        with suppress(OSError):
            family, kind, _, _, place = socket.getaddrinfo(peer, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as probe:
                probe.connect(place)  # a datagram socket sends nothing
                found = str(probe.getsockname()[0])
            if not found.startswith("127.") and found != "::1":
                return found
    return found


def _wait_for_silence() -> None:
    """Return at the end of the input, or when it was silent for `SILENCE_S`."""
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    while poll.poll(SILENCE_S * 1000):
        if not os.read(0, 4096):
            return


def _passing_to(
    port: int,
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))
        other_writer.close()
        writer.close()

    return serve


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def _parents() -> list[Path]:
    return [Path("/tmp"), Path.home() / ".nni"]  # noqa: S108 - folders there are checked


def _make_private(folder: Path) -> None:
    """Create a folder with mode 0700, which only this user may enter.

    Raises:
        OSError: it cannot be created, or another user was first with its name.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(1, "it is no folder of this user", str(folder))
    if stat.S_IMODE(found.st_mode) != 0o700:  # noqa: PLR2004 - the mode of private folders
        folder.chmod(0o700)


def _print(fields: dict[str, object]) -> None:
    print(json.dumps(fields), flush=True)  # noqa: T201 - the answer


def main(words: list[str]) -> None:
    """Run the call that the words name: open, publish, close, watch, relay or listen."""
    match words:
        case ["open", key]:
            _print(dict(open_folder(key)))
        case ["publish", base, name]:
            publish(Path(base), name)
            _print({"published": name})
        case ["close", key]:
            close_folder(key)
            _print({"closed": key})
        case ["watch", base]:
            watch(Path(base))
        case ["relay", folder, bus_port, manager_port]:
            asyncio.run(relay(Path(folder), int(bus_port), int(manager_port)))
        case ["listen", port, target, *peers]:
            asyncio.run(listen(int(port), int(target), peers))
        case _:
            raise SystemExit(f"unknown call: {words}")


if __name__ == "__main__":
    main(sys.argv[1:])
