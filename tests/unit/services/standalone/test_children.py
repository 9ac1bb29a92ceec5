"""Child processes, each a small Python program."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import grpc
import pytest

from svc_common import environment
from svc_standalone import children
from svc_standalone.children import Child, Command
from tests.support.answering_bus import answering_bus
from tests.support.ports import free_port

WRITE_READY = "import os; os.write(int(os.environ['NNI_READY_FD']), b'%s\\n')"
READY = '{"ready": true, "port": 7}'
PAUSE = "import signal; signal.pause()"


def start(folder: Path, code: str, *, reports_ready: bool = True) -> Child:
    command = Command("child", (sys.executable, "-c", code), environment.current(), reports_ready)
    return Child(command, folder, folder / "log" / "child.log")


async def test_fields_of_readiness_are_strings(tmp_path: Path) -> None:
    child = start(tmp_path, f"{WRITE_READY % READY}; {PAUSE}")

    async with asyncio.timeout(20):
        assert await child.ready() == {"port": "7"}
    assert child.running

    await child.stop(5.0)
    assert not child.running


async def test_child_that_ends_before_it_is_ready_has_no_fields(tmp_path: Path) -> None:
    child = start(tmp_path, "raise SystemExit(3)")

    async with asyncio.timeout(20):
        assert await child.ready() is None
        assert await child.wait() == 3


async def test_child_without_the_protocol_is_ready_at_once(tmp_path: Path) -> None:
    child = start(tmp_path, PAUSE, reports_ready=False)

    async with asyncio.timeout(20):
        assert await child.ready() == {}
    await child.stop(5.0)


async def test_signal_is_a_negative_status(tmp_path: Path) -> None:
    child = start(tmp_path, PAUSE, reports_ready=False)

    os.kill(child.pid, signal.SIGKILL)

    async with asyncio.timeout(20):
        assert await child.wait() == -signal.SIGKILL


async def test_reported_error_is_the_reason(tmp_path: Path) -> None:
    code = WRITE_READY % '{"ready": false, "error": "the port is taken"}'
    child = start(tmp_path, f"print('another line'); {code}")

    async with asyncio.timeout(20):
        await child.wait()

    assert child.failure_reason() == "the port is taken"


async def test_last_line_of_this_run_is_the_reason_without_a_report(tmp_path: Path) -> None:
    first = start(tmp_path, "print('of the first run')")
    await first.wait()
    second = start(tmp_path, "print('first line'); print('last line'); print()")
    await second.wait()
    third = start(tmp_path, "pass")
    await third.wait()

    assert second.failure_reason() == "last line"
    assert third.failure_reason() == ""


async def test_bus_gives_signs_while_its_queue_of_new_connections_is_full(tmp_path: Path) -> None:
    port = free_port()
    child = Child(answering_bus(port), tmp_path, tmp_path / "bus.log")
    async with asyncio.timeout(20):
        while child.last_sign_s is None:
            await child.look_for_sign(10.0)
            await asyncio.sleep(0.001)  # another process: nothing to await here
    flood = [socket.socket() for _ in range(8)]
    for one in flood:
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
    before = child.last_sign_s

    await child.look_for_sign(10.0)

    assert child.last_sign_s > before
    await child.stop(5.0)
    for one in flood:
        one.close()


async def test_children_start_while_threads_of_grpc_run(tmp_path: Path) -> None:
    """A fork of such a process aborts in one of eight cases, as measured; a new program cannot."""

    async def echo(request: bytes, _: object) -> bytes:
        return request

    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Echo": grpc.unary_unary_rpc_method_handler(echo)
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/test.Echo/Echo"
        )

        async def keep_calling() -> None:
            while True:
                await call(b"x" * 1_000)

        callers = [asyncio.create_task(keep_calling()) for _ in range(4)]
        statuses = [await start(tmp_path, "", reports_ready=False).wait() for _ in range(40)]
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    await server.stop(None)

    assert statuses == [0] * 40


async def test_large_log_is_rotated_at_the_start(tmp_path: Path) -> None:
    log = tmp_path / "log" / "child.log"
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(children._LOG_LIMIT_BYTES + 1)

    child = start(tmp_path, "print('new')")
    await child.wait()

    assert log.read_text() == "new\n"
    assert log.with_suffix(".log.1").stat().st_size == children._LOG_LIMIT_BYTES + 1


async def test_child_runs_without_a_log_that_cannot_be_opened(tmp_path: Path) -> None:
    # A device without a driver can be neither opened nor replaced by this path's folder.
    (tmp_path / "log").symlink_to("/proc/self")

    child = start(tmp_path, f"{WRITE_READY % READY}; {PAUSE}")

    async with asyncio.timeout(20):
        assert await child.ready() == {"port": "7"}
    await child.stop(5.0)
    assert child.failure_reason() == ""


@pytest.mark.parametrize("place", ["log", "log/child.log"])
async def test_what_stands_in_the_place_of_a_log_is_set_aside(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    if place == "log":
        path.write_text("no folder")
    else:
        path.mkdir(parents=True)

    child = start(tmp_path, "print('hello')")
    await child.wait()

    assert (tmp_path / "log" / "child.log").read_text() == "hello\n"
