"""Child processes, each a small Python program."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from pathlib import Path

import grpc
import psutil
import pytest

from svc_common import environment
from svc_standalone.children import Child, Command
from tests.support.answering_bus import answering_bus
from tests.support.ports import free_port

WRITE_READY = "import os; os.write(int(os.environ['NNI_READY_FD']), b'%s\\n')"
READY = '{"ready": true, "port": 7}'
PAUSE = "import signal; signal.pause()"
LOG_LIMIT_BYTES = 32 * 1024 * 1024


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


@pytest.mark.parametrize(("more", "rotated"), [(0, False), (1, True)])
async def test_large_log_is_rotated_at_the_start(tmp_path: Path, more: int, rotated: bool) -> None:
    log = tmp_path / "log" / "child.log"
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(LOG_LIMIT_BYTES + more)

    child = start(tmp_path, "print('new')")
    await child.wait()

    old = log.with_suffix(".log.1")
    assert old.exists() is rotated
    assert log.stat().st_size == (len("new\n") if rotated else LOG_LIMIT_BYTES + len("new\n"))


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


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def full_command(code: str) -> Command:
    """Return a command with secrets, readiness and output that is searched."""
    return Command(
        "child",
        (sys.executable, "-c", code),
        environment.current(),
        reports_ready=True,
        halts=re.compile(rb"[^\n]*halts[^\n]*"),
        secrets={"NNI_TOKEN": "hush"},
    )


async def test_ended_child_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = open_descriptors()

    child = Child(full_command(WRITE_READY % READY), tmp_path, tmp_path / "child.log")
    async with asyncio.timeout(20):
        await child.wait()

    assert open_descriptors() == before
    assert await child.ready() == {"port": "7"}


async def test_child_that_cannot_be_started_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = open_descriptors()

    with pytest.raises(FileNotFoundError):
        Child(full_command(""), tmp_path / "missing", tmp_path / "child.log")
    for _ in range(5):  # the loop reads the end of the output
        await asyncio.sleep(0)

    assert open_descriptors() == before


async def test_child_ends_while_its_own_child_keeps_its_pipes(tmp_path: Path) -> None:
    code = """
import os, signal
pid = os.fork()
if pid == 0:
    signal.pause()
print(pid, flush=True)
"""
    child = Child(full_command(code), tmp_path, tmp_path / "child.log")

    async with asyncio.timeout(20):
        assert await child.wait() == 0

    os.kill(int((tmp_path / "child.log").read_text()), signal.SIGKILL)
    assert await child.ready() is None


async def test_first_line_after_which_a_child_works_no_more_is_kept(tmp_path: Path) -> None:
    code = "print('it works'); print('  halts here '); print('halts again')"
    child = Child(full_command(code), tmp_path, tmp_path / "child.log")
    assert child.halted == ""

    await child.wait()

    assert child.halted == "halts here"
    assert (tmp_path / "child.log").read_text() == "it works\n  halts here \nhalts again\n"


async def test_child_reads_secrets_and_inherited_descriptors(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"inherited")
    code = (
        f"import os; print(os.read({reader}, 99), os.read(int(os.environ['NNI_SECRETS_FD']), 99))"
    )
    command = full_command(code)
    child = Child(
        Command(
            "child", command.arguments, command.environment, True, None, [reader], command.secrets
        ),
        tmp_path,
        tmp_path / "child.log",
    )

    await child.wait()

    text = (tmp_path / "child.log").read_text()
    assert "inherited" in text
    assert "hush" in text
    os.close(reader)
    os.close(writer)


WAIT_FOR_SIGNAL = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {1, 15})
os.write(int(os.environ["NNI_READY_FD"]), b'{"ready": true}\\n')
sys.exit(10 + [1, 15].index(signal.sigwait({1, 15})))
"""


@pytest.mark.parametrize(
    ("method", "status"), [("reload", 10), ("terminate", 11), ("kill", -signal.SIGKILL)]
)
async def test_signals_reach_a_child_until_it_has_ended(
    tmp_path: Path, method: str, status: int
) -> None:
    child = start(tmp_path, WAIT_FOR_SIGNAL)
    async with asyncio.timeout(20):
        await child.ready()

        getattr(child, method)()

        assert await child.wait() == status
    getattr(child, method)()  # it has ended: nothing is sent
    assert not child.running


async def test_readiness_that_comes_in_pieces_is_one_report(tmp_path: Path) -> None:
    """The child writes the second piece when the first one has been read."""
    code = """
import array, fcntl, os, signal, termios
ready, left = int(os.environ["NNI_READY_FD"]), array.array("i", [1])
os.write(ready, b'{"ready": true, ')
while left[0]:
    fcntl.ioctl(ready, termios.FIONREAD, left)
os.write(ready, b'"port": 7}\\n')
signal.pause()
"""
    child = start(tmp_path, code)

    async with asyncio.timeout(20):
        assert await child.ready() == {"port": "7"}
    await child.stop(5.0)


async def test_report_without_readiness_is_an_error(tmp_path: Path) -> None:
    child = start(tmp_path, WRITE_READY % '{"error": "no room"}')

    async with asyncio.timeout(20):
        assert await child.ready() is None
    assert child.failure_reason() == "no room"


async def test_processor_time_is_that_of_the_child_and_its_ended_children(tmp_path: Path) -> None:
    code = """
import os, signal, time
def compute():
    while min(os.times()[:2]) < 0.03:
        [os.stat("/") for _ in range(100)]
        sum(range(10_000))
if os.fork() == 0:
    compute()
    os._exit(0)
os.wait()
compute()
os.write(int(os.environ["NNI_READY_FD"]), b'{"ready": true}\\n')
signal.pause()
"""
    child = start(tmp_path, code)
    async with asyncio.timeout(20):
        await child.ready()
    process = psutil.Process(child.pid)

    before_s, cpu_s, after_s = (
        sum(process.cpu_times()[:4]),
        child.cpu_s,
        sum(process.cpu_times()[:4]),
    )

    assert before_s - 1e-6 <= cpu_s <= after_s + 1e-6
    assert cpu_s >= 0.12 - 1e-6  # 0.03 s of each kind
    assert 0.0 < child.ran_s < 120.0
    await child.stop(5.0)
    assert child.cpu_s == 0.0


async def test_child_without_secrets_and_readiness_has_no_pipes_of_the_supervisor(
    tmp_path: Path,
) -> None:
    code = "import os; print([name for name in os.environ if name[:4] + name[-3:] == 'NNI__FD'])"
    child = start(tmp_path, code, reports_ready=False)

    await child.wait()

    assert (tmp_path / "log" / "child.log").read_text() == "[]\n"
    assert os.fstat(0)  # its standard input is still that of the tests


async def test_reason_is_the_last_line_of_a_long_log(tmp_path: Path) -> None:
    child = start(tmp_path, "print('x' * 5000); print('y' * 500); print('why')")

    await child.wait()

    assert child.failure_reason() == "why"


async def test_reason_is_cut_to_the_end_of_a_log_that_is_one_long_line(tmp_path: Path) -> None:
    child = start(tmp_path, "print('x' * 5000)", reports_ready=False)

    await child.wait()

    assert child.failure_reason() == "x" * 1_999  # of the last 2000 bytes
