"""Folders of sockets on a worker, and the watch for processes that end.

This file is sent to the worker's Python with each call and has the standard library only. It prints
one JSON object per line.

A folder `/tmp/nni-<uid>-<key>` (0700) has one subfolder for each connection, in which the SSH
server makes `bus.sock` and `manager.sock`, and the file `current` with the name of the present one.
A cut connection leaves its sockets behind, and a second listener at the same path is refused, so
that each connection has a subfolder of its own. `$XDG_RUNTIME_DIR` is no place for it: it is
removed with the last login session of the user, and agents outlive sessions.

Where the SSH server refuses to listen on sockets it listens on ports of the loopback interface;
`relay` makes the sockets then, so that agents know one way only.
"""

import asyncio
import json
import os
import secrets
import select
import shutil
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
_CHUNK_BYTES: Final = 256 * 1024
_RENEW_S: Final = 6 * 3600.0
"""Cleaners of `/tmp` remove files that were not touched for days."""


def open_folder(key: str) -> dict[str, str]:
    """Make a key's folder where socket paths fit, and a subfolder; return path and name."""
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
    """Make a subfolder the current one and remove all others."""
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
    """Read pids from the input and print each that ends; renew the folder's times until its end.

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
    """Pass connections of sockets on to ports of the loopback interface until the input ends."""
    servers = [
        await asyncio.start_unix_server(_passing_to(port), folder / name)
        for name, port in ((BUS_SOCKET, bus_port), (MANAGER_SOCKET, manager_port))
    ]
    _print({"relaying": len(servers)})
    await asyncio.to_thread(lambda: [None for _ in iter(lambda: os.read(0, 4096), b"")])


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
    """Create a folder of this user that no other one may enter.

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
    """Run the call that the words name: open, publish, close, watch or relay."""
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
        case _:
            raise SystemExit(f"unknown call: {words}")


if __name__ == "__main__":
    main(sys.argv[1:])
