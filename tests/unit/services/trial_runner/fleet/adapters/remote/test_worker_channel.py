"""Program of the sockets on a worker, run here."""

import asyncio
import json
import os
import shutil
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
    address_towards,
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


def test_folder_that_can_be_made_nowhere_is_refused_with_the_first_reason(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    trap = Path(f"/tmp/nni-{os.getuid()}-{key}")
    trap.symlink_to(tmp_path)

    with pytest.raises(PermissionError, match="no folder of this user"):
        open_folder(key)

    trap.unlink()


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


def test_listener_passes_connections_of_all_addresses_on_to_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as front:
        thread = threading.Thread(target=echo, args=(front, b"front "), daemon=True)
        thread.start()
        target = str(front.getsockname()[1])
        with started("listen", "0", target, "127.0.0.1") as listener:
            report = line_of(listener)
            assert report["address"] == "127.0.0.1"
            # Another loopback address: it listens on all of them.
            with socket.create_connection(("127.0.0.2", report["port"])) as client:
                client.sendall(b"hello")
                client.shutdown(socket.SHUT_WR)
                assert received(client) == b"front hello"
            assert listener.stdin is not None
            listener.stdin.close()
            assert listener.wait(10) == 0
        thread.join(10)


def test_listener_waits_for_its_port_which_an_earlier_one_still_has() -> None:
    with started("listen", "0", "9") as first:
        port = line_of(first)["port"]
        with started("listen", str(port), "9") as second:
            assert first.stdin is not None
            first.stdin.close()

            assert line_of(second)["port"] == port
            assert second.stdin is not None
            second.stdin.close()


def test_listener_ends_when_its_input_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(worker_channel, "SILENCE_S", 0.0)
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        asyncio.run(worker_channel.listen(0, 9, []))
        open_still = os.write(writing, b"x")  # nothing was read: its end was not that of the input
    finally:
        os.dup2(kept, 0)
        for descriptor in (reading, writing, kept):
            os.close(descriptor)

    assert open_still == 1


def test_port_that_stays_taken_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_channel, "_PORT_S", 0.0)
    with socket.create_server(("", 0)) as other:
        taken = other.getsockname()[1]

        with asyncio.run(worker_channel._listening(taken)) as listening:
            assert listening.getsockname()[1] not in {0, taken}


@pytest.mark.parametrize(
    ("peers", "address"),
    [
        ([], ""),
        (["no-such-host.invalid"], ""),
        (["no-such-host.invalid", "127.0.0.1"], "127.0.0.1"),
    ],
)
def test_address_is_that_towards_a_peer(peers: list[str], address: str) -> None:
    assert address_towards(peers) == address


def echo(server: socket.socket, word: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(word + received(connection))


def received(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def test_folder_whose_path_is_too_long_for_sockets_is_refused() -> None:
    with pytest.raises(OSError, match="no folder for sockets has a path that is short enough"):
        open_folder("k" * 80)

    assert not list(Path("/tmp").glob(f"nni-{os.getuid()}-{'k' * 80}*"))


def test_path_of_sockets_may_have_107_bytes(key: str) -> None:
    # The folder of a connection and the longer name of a socket follow the key.
    fixed = len(f"/tmp/nni-{os.getuid()}-/c-00000000/manager.sock")
    longest = key + "k" * (107 - fixed - len(key))

    made = open_folder(longest)

    try:
        path = Path(made["base"]) / made["name"] / MANAGER_SOCKET
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
        assert len(str(path)) == 107
    finally:
        close_folder(longest)


def test_home_has_the_folder_where_that_of_the_system_is_taken(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(f"/tmp/h{key}")  # short enough for sockets
    (home / ".nni").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    trap = Path(f"/tmp/nni-{os.getuid()}-{key}")
    trap.symlink_to(tmp_path)
    try:
        made = open_folder(key)
        base = Path(made["base"])
        assert base == home / ".nni" / f"nni-{os.getuid()}-{key}"
        assert (base / made["name"]).is_dir()
        close_folder(key)
        assert not base.exists()
        assert not trap.is_symlink()
        assert tmp_path.is_dir()
    finally:
        trap.unlink(missing_ok=True)
        shutil.rmtree(home)


def test_files_that_are_no_folders_of_connections_stay_at_a_publication(key: str) -> None:
    made = open_folder(key)
    base = Path(made["base"])
    for name in ("other", ".c-old", "c-file"):
        (base / name).touch()

    publish(base, made["name"])

    assert sorted(path.name for path in base.iterdir()) == sorted([made["name"], "other", CURRENT])


def test_number_that_arrives_in_two_pieces_is_one_process(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as first, subprocess.Popen(["true"]) as second:
        first.wait()
        second.wait()
    with started("watch", str(tmp_path)) as watch:
        line_of(watch)
        assert watch.stdin is not None
        digits = str(second.pid)
        watch.stdin.write(f"{first.pid}\n{digits[:1]}")
        watch.stdin.flush()
        assert line_of(watch) == {"ended": first.pid}
        watch.stdin.write(f"{digits[1:]}\n")
        watch.stdin.flush()

        assert line_of(watch) == {"ended": second.pid}
        watch.stdin.close()


def test_watch_keeps_the_folder_young(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").touch()
    (tmp_path / "link").symlink_to("/nowhere")
    paths = [tmp_path / "inner" / "file", tmp_path / "inner", tmp_path / "link", tmp_path]
    for path in paths:
        os.utime(path, (1000, 1000), follow_symlinks=False)
    code = (
        "import sys; from pathlib import Path; names = {'__name__': 'channel'}; "
        "exec(Path(sys.argv[1]).read_text(), names); names['_RENEW_S'] = 0.0; "
        "names['watch'](Path(sys.argv[2]))"
    )
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, worker_channel.__file__, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as watch:
        line_of(watch)
        assert watch.stdin is not None
        for _ in range(2):  # at the second one, the folder was renewed after the first one
            watch.stdin.write(f"{gone.pid}\n")
            watch.stdin.flush()
            line_of(watch)
        watch.stdin.close()

    assert all(path.lstat().st_mtime > 1000 for path in paths)


def test_connection_whose_target_is_away_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as away:
        target = str(away.getsockname()[1])
    with started("listen", "0", target) as listener:
        report = line_of(listener)
        assert report["address"] == ""
        with socket.create_connection(("127.0.0.1", report["port"])) as client:
            client.settimeout(30)
            assert client.recv(1) == b""
        assert listener.stdin is not None
        listener.stdin.close()


def test_calls_print_what_they_have_done(key: str) -> None:
    opened = json.loads(subprocess.check_output([*PROGRAM, "open", key]))
    published = subprocess.check_output([*PROGRAM, "publish", opened["base"], opened["name"]])
    current = (Path(opened["base"]) / CURRENT).read_text()
    closed = subprocess.check_output([*PROGRAM, "close", key])

    assert json.loads(published) == {"published": opened["name"]}
    assert current == opened["name"]
    assert json.loads(closed) == {"closed": key}
    assert not Path(opened["base"]).exists()


def test_unknown_call_is_refused() -> None:
    done = subprocess.run([*PROGRAM, "open"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, "unknown call: ['open']\n")


def test_loopback_address_is_the_last_choice() -> None:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            outer = str(probe.getsockname()[0])
    except OSError:
        pytest.skip("this machine has no other network")

    assert address_towards(["127.0.0.1", "192.0.2.1", "127.0.0.1"]) == outer
