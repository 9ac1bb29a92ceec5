"""Program of the sockets on a worker, run here."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.remote import worker_channel
from svc_trial_runner.fleet.adapters.remote.worker_channel import (
    BUS_SOCKET,
    CURRENT,
    MANAGER_SOCKET,
    close_folder,
    open_folder,
    publish,
)

PROGRAM = [sys.executable, "-I", "-S", worker_channel.__file__]


@pytest.fixture
def key() -> Iterator[str]:
    """Key of folders that no other test has; they are removed."""
    word = f"{os.getpid():x}-{os.urandom(2).hex()}"
    yield word
    close_folder(word)


def started(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*PROGRAM, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def line_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    fields: dict[str, Any] = json.loads(process.stdout.readline())
    return fields


def test_folder_is_private_and_each_connection_has_its_own(key: str) -> None:
    first, second = open_folder(key), open_folder(key)

    assert first["base"] == second["base"]
    assert first["name"] != second["name"]
    base = Path(first["base"])
    assert base.parent == Path("/tmp")
    for folder in (base, base / first["name"]):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_published_folder_is_current_and_earlier_ones_are_removed(key: str) -> None:
    first = open_folder(key)
    base = Path(first["base"])
    (base / first["name"] / BUS_SOCKET).touch()
    publish(base, first["name"])
    second = open_folder(key)

    publish(base, second["name"])

    assert (base / CURRENT).read_text() == second["name"]
    assert sorted(path.name for path in base.iterdir()) == [second["name"], CURRENT]


def test_link_in_place_of_the_folder_is_not_followed(key: str, tmp_path: Path) -> None:
    trap = Path(f"/tmp/nni-{os.getuid()}-{key}")
    trap.symlink_to(tmp_path)

    with pytest.raises(OSError, match="no folder of this user"):
        publish(trap, "c-1")

    trap.unlink()
    assert list(tmp_path.iterdir()) == []


def test_folder_that_others_may_enter_is_closed(key: str) -> None:
    base = Path(open_folder(key)["base"])
    base.chmod(0o777)

    open_folder(key)

    assert base.stat().st_mode & 0o777 == 0o700


def test_closed_folder_is_gone_and_may_be_closed_again(key: str) -> None:
    base = Path(open_folder(key)["base"])

    close_folder(key)
    close_folder(key)

    assert not base.exists()


def test_watch_prints_ends_and_returns_with_its_input(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as child, started("watch", str(tmp_path)) as watch:
        assert line_of(watch) == {"watching": True}
        assert watch.stdin is not None
        watch.stdin.write(f"{child.pid}\n")
        watch.stdin.flush()
        child.kill()
        assert line_of(watch) == {"ended": child.pid}
        watch.stdin.close()

        assert watch.wait(10) == 0


def test_process_that_is_gone_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    with started("watch", str(tmp_path)) as watch:
        line_of(watch)
        assert watch.stdin is not None
        watch.stdin.write(f"{gone.pid}\n")
        watch.stdin.flush()

        assert line_of(watch) == {"ended": gone.pid}
        watch.stdin.close()


def test_relay_passes_both_ways_to_ports_and_ends_with_its_input(key: str) -> None:
    made = open_folder(key)
    folder = Path(made["base"]) / made["name"]
    with (
        socket.create_server(("127.0.0.1", 0)) as bus,
        socket.create_server(("127.0.0.1", 0)) as manager,
    ):
        threads = [
            threading.Thread(target=echo, args=(one, word), daemon=True)
            for one, word in ((bus, b"bus "), (manager, b"manager "))
        ]
        for thread in threads:
            thread.start()
        ports = [str(one.getsockname()[1]) for one in (bus, manager)]
        with started("relay", str(folder), *ports) as relay:
            assert line_of(relay) == {"relaying": 2}
            for name, expected in ((BUS_SOCKET, b"bus hello"), (MANAGER_SOCKET, b"manager hello")):
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(folder / name))
                    client.sendall(b"hello")
                    client.shutdown(socket.SHUT_WR)
                    assert received(client) == expected
            assert relay.stdin is not None
            relay.stdin.close()
            assert relay.wait(10) == 0
        for thread in threads:
            thread.join(10)


def echo(server: socket.socket, word: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(word + received(connection))


def received(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data
