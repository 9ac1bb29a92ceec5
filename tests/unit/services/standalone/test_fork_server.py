"""Fork servers of small programs, whose forks are compared with new interpreters."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from svc_common import environment
from svc_standalone import fork_server
from svc_standalone.commands import SERVICES
from svc_standalone.fork_server import (
    SHARED_MODULES,
    ForkedProcess,
    ForkServer,
    start_fork_server,
)
from svc_standalone.forked_service import ServiceStart, TitleArea

GET_CHILD_SUBREAPER = 37
FIRST_SERVICES = ("manager", "dispatcher", "trial-runner")

REPORT = """
    import gc, json, os, signal, sys
    from pathlib import Path

    def descriptors():
        found = {int(name) for name in os.listdir("/proc/self/fd")}
        return {number: os.readlink(f"/proc/self/fd/{number}") for number in found
                if os.path.exists(f"/proc/self/fd/{number}")}

    heirlooms = os.environ["HEIRLOOMS"].split(",")
    print(json.dumps({
        "name": __name__, "main": vars(sys.modules["__main__"]) is globals(),
        "package": __package__, "argv": sys.argv[1:], "path": sys.path,
        "orig_argv": sys.orig_argv, "flags": repr(sys.flags), "parent": os.getppid(),
        "leads": os.getsid(0) == os.getpid(), "folder": os.getcwd(), "umask": os.umask(0),
        "environment": dict(os.environ), "threads": len(os.listdir("/proc/self/task")),
        "title": [word for word in Path("/proc/self/cmdline").read_text().split("\\0") if word],
        "descriptors": descriptors(),
        "signals": [repr(signal.getsignal(number)) for number in signal.valid_signals()],
        "masked": list(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "heirlooms": [os.read(int(number), 100).decode() for number in heirlooms],
        "streams": [(one.encoding, one.errors, one.line_buffering, one.isatty())
                    for one in (sys.stdin, sys.stdout, sys.stderr)],
    }))
    raise SystemExit(7)
"""
"""Service that reports all in which a fork may differ from a new interpreter, and exits with 7."""

SUPERVISOR = """
    import json, os, subprocess, sys
    from svc_standalone.fork_server import start_fork_server
    from svc_standalone.forked_service import ServiceStart

    server = start_fork_server(("email", "asyncio"))
    folder, *packages = sys.argv[1:]
    own = os.open(os.devnull, os.O_RDONLY)  # of the supervisor alone
    os.set_inheritable(own, True)

    def start(package, output, *contents):
        numbers = []
        for content in contents:
            reader, writer = os.pipe()
            os.write(writer, content.encode())
            os.close(writer)
            numbers.append(reader)
        variables = {**os.environ, "HEIRLOOMS": ",".join(map(str, numbers))}
        with open(output, "wb") as file:
            request = ServiceStart(package, variables, folder, numbers)
            process = server.start(request, file.fileno(), numbers)
        for number in numbers:
            os.close(number)
        return process
"""
"""Beginning of programs that start services in a fork server."""


def supervisor(folder: Path, body: str, *arguments: str, flags: tuple[str, ...] = ("-P",)) -> Any:
    """Run a program with a fork server and the packages of a folder; return what it prints."""
    program = textwrap.dedent(SUPERVISOR) + textwrap.dedent(body)
    command = [sys.executable, *flags, "-c", program, str(folder), *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables(folder),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=100,
    )
    return json.loads(done.stdout)


def variables(folder: Path) -> dict[str, str]:
    return {**environment.current(), "PYTHONPATH": str(folder)}


def package(folder: Path, code: str) -> None:
    """Write the package `one`, whose `__main__` is a program."""
    (folder / "one").mkdir()
    (folder / "one" / "__init__.py").touch()
    (folder / "one" / "__main__.py").write_text(textwrap.dedent(code))


def test_fork_is_in_nothing_different_from_a_new_interpreter(tmp_path: Path) -> None:
    package(tmp_path, REPORT)
    body = """
        process = start("one", "forked", "first", "second")
        statuses = [process.wait()]
        pipes = [os.pipe() for _ in range(2)]
        for (_, writer), content in zip(pipes, ("first", "second")):
            os.write(writer, content.encode())
        numbers = [reader for reader, _ in pipes]
        variables = {**os.environ, "HEIRLOOMS": ",".join(map(str, numbers))}
        command = [sys.executable, "-P", "-m", "one"]
        with open("executed", "wb") as file:
            program = subprocess.Popen(
                command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=file,
                stderr=file, pass_fds=numbers, start_new_session=True,
            )
        statuses.append(program.wait())
        print(json.dumps(statuses))
    """

    statuses = supervisor(tmp_path, body)

    forked, executed = (
        json.loads((tmp_path / name).read_text()) for name in ("forked", "executed")
    )
    assert statuses == [7, 7]
    assert forked["heirlooms"] == ["first", "second"]
    for report in (forked, executed):  # numbers of pipes and of the reading differ by chance
        report["descriptors"] = len(report["descriptors"])
        report["environment"].pop("HEIRLOOMS")
        report["streams"] = [stream[:3] for stream in report["streams"]]
    assert forked == executed


def test_fork_has_the_modules_of_the_server(tmp_path: Path) -> None:
    package(tmp_path, "import sys; print('email' in sys.modules, 'asyncio' in sys.modules)")

    supervisor(tmp_path, "start('one', 'found').wait(); print(0)")

    assert (tmp_path / "found").read_text() == "True True\n"


def test_end_by_a_signal_is_a_negative_status(tmp_path: Path) -> None:
    package(tmp_path, "import signal; signal.pause()")
    body = "process = start('one', 'found'); process.kill(); print(process.wait())"

    assert supervisor(tmp_path, body) == -signal.SIGKILL


def test_exception_of_a_service_is_in_its_output(tmp_path: Path) -> None:
    package(tmp_path, "raise ValueError('of the service')")

    status = supervisor(tmp_path, "print(start('one', 'found').wait())")

    assert status == 1
    assert (tmp_path / "found").read_text().endswith("ValueError: of the service\n")


def test_service_in_a_folder_that_is_gone_says_so(tmp_path: Path) -> None:
    package(tmp_path, "")
    body = "folder += '/gone'; print(start('one', 'found').wait())"

    assert supervisor(tmp_path, body) == 127
    assert "FileNotFoundError" in (tmp_path / "found").read_text()


def test_server_that_was_killed_starts_nothing(tmp_path: Path) -> None:
    package(tmp_path, "")
    body = """
        os.kill(server._pid, 9)
        print(json.dumps([start("one", "found"), start("one", "found")]))
    """

    assert supervisor(tmp_path, body) == [None, None]


def test_title_without_room_starts_nothing_and_leaves_the_server_open(tmp_path: Path) -> None:
    package(tmp_path, "")
    body = """
        refused = start("o" * 2_000_000, "found") is None
        print(json.dumps([refused, start("one", "found").wait()]))
    """

    assert supervisor(tmp_path, body) == [True, 0]


def test_closed_server_leaves_its_services_and_no_process(tmp_path: Path) -> None:
    package(tmp_path, "import signal; signal.pause()")
    body = """
        process = start("one", "found")
        server.close()
        server.close()
        assert start("one", "found") is None
        running = os.waitpid(process.pid, os.WNOHANG) == (0, 0)
        process.terminate()
        process.wait()
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print(json.dumps(running))
    """

    assert supervisor(tmp_path, body) is True


def test_orphans_of_services_do_not_become_children_of_the_supervisor(tmp_path: Path) -> None:
    package(
        tmp_path,
        """
        import os, signal
        pid = os.fork()
        if pid == 0:
            signal.pause()
        print(pid)
        """,
    )
    body = """
        start("one", "found").wait()
        pid = int(open("found").read())
        parent = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
        os.kill(pid, 9)
        print(json.dumps(parent == os.getpid()))
    """

    assert supervisor(tmp_path, body) is False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_server_and_services_end_with_the_supervisor(
    tmp_path: Path, number: signal.Signals
) -> None:
    package(tmp_path, "import signal; signal.pause()")
    body = """
        process = start("one", "found")
        print(process.pid, server._pid, flush=True)
        import signal; signal.pause()
    """
    program = textwrap.dedent(SUPERVISOR) + textwrap.dedent(body)

    with subprocess.Popen(
        [sys.executable, "-P", "-c", program, str(tmp_path)],
        cwd=tmp_path,
        env=variables(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        ends = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
        parent.send_signal(number)

        for end in ends:
            assert select.select([end], [], [], 60)[0]  # readable once the process has ended
            os.close(end)


def test_interpreter_with_another_search_path_has_no_server() -> None:
    assert not sys.flags.safe_path, "the tests need one without -P"

    assert start_fork_server(()) is None


def test_grpc_works_in_two_forks_of_a_server_that_has_imported_it(tmp_path: Path) -> None:
    package(
        tmp_path,
        """
        import asyncio, grpc

        async def echo(request, _):
            return request

        async def main():
            server = grpc.aio.server()
            handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler("test.Echo", handlers),)
            )
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                print((await channel.unary_unary("/test.Echo/Echo")(b"answer")).decode())
            await server.stop(0)

        asyncio.run(main())
        """,
    )
    body = """
        server.close()
        server = start_fork_server(("svc_common.rpc.server", "svc_common.rpc.client"))
        both = [start("one", name) for name in ("first", "second")]
        print(json.dumps([process.wait() for process in both]))
    """

    assert supervisor(tmp_path, body) == [0, 0]
    assert [(tmp_path / name).read_text() for name in ("first", "second")] == ["answer\n"] * 2


def test_shared_modules_start_no_thread_and_open_nothing() -> None:
    program = """
        import importlib, os, sys
        before = set(os.listdir("/proc/self/fd"))
        for name in sys.argv[1:]:
            importlib.import_module(name)
        print(len(os.listdir("/proc/self/task")), set(os.listdir("/proc/self/fd")) == before,
              "numpy" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), *SHARED_MODULES]

    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    assert found.split() == ["1", "True", "False"]


@pytest.mark.parametrize("service", FIRST_SERVICES)
def test_shared_modules_are_those_of_each_service(service: str) -> None:
    program = f"import sys, {SERVICES[service]}.app; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()

    assert {*SHARED_MODULES} <= {*loaded}


def test_server_has_nothing_of_its_supervisor_and_keeps_nothing_of_its_services(
    tmp_path: Path,
) -> None:
    package(tmp_path, "")
    body = """
        server.close()
        for _ in range(9):
            os.open(os.devnull, os.O_RDONLY)
        server = start_fork_server(())
        start("one", "found", "heirloom").wait()
        sockets = [name for name in os.listdir("/proc/self/fd")
                   if os.path.exists(f"/proc/self/fd/{name}")
                   and os.readlink(f"/proc/self/fd/{name}").startswith("socket:")]
        import psutil, time
        end_s = time.monotonic() + 60
        while len(os.listdir(f"/proc/{server._pid}/fd")) > 4 and time.monotonic() < end_s:
            os.sched_yield()  # it closes what it has passed on
        print(json.dumps({
            "descriptors": sorted(map(int, os.listdir(f"/proc/{server._pid}/fd")))[:3],
            "count": len(os.listdir(f"/proc/{server._pid}/fd")),
            "children": len(psutil.Process(server._pid).children()),
            "leads": os.getsid(server._pid) == server._pid,
            "sockets": len(sockets),
        }))
    """

    found = supervisor(tmp_path, body)

    assert found == {
        "descriptors": [0, 1, 2], "count": 4, "children": 0, "leads": True, "sockets": 1
    }  # fmt: skip


def test_modules_are_imported_without_garbage_collection(tmp_path: Path) -> None:
    """A collection would write to memory that the services share."""
    package(tmp_path, "import gc; print(gc.isenabled(), gc.get_freeze_count() > 1_000)")

    supervisor(tmp_path, "start('one', 'found').wait(); print(0)")

    assert (tmp_path / "found").read_text() == "False True\n"


def test_process_without_standard_input_has_no_server(tmp_path: Path) -> None:
    program = """
        from svc_standalone.fork_server import start_fork_server
        print(start_fork_server(()))
    """
    command = [sys.executable, "-P", "-c", textwrap.dedent(program)]

    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command],
        env=variables(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout == "None\n"


@pytest.mark.parametrize("parent", ["the supervisor", "another process"])
def test_fork_reports_its_number_only_to_its_parent(tmp_path: Path, parent: str) -> None:
    body = f"""
        from svc_standalone.fork_server import serve
        import socket
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reader, writer = os.pipe()
        socket.send_fds(here, [b"."], [reader])
        pid = os.fork()
        if pid == 0:
            here.close()
            parent = os.getppid() if {parent == "the supervisor"} else os.getpid()
            received = serve(there, parent, fork=iter([0, 0]).__next__)
            os._exit(len(received) + (there.fileno() < 0))
        there.close()
        _, status = os.waitpid(pid, 0)
        shown = here.recv(32).decode()
        print(json.dumps([os.waitstatus_to_exitcode(status), shown == str(pid), shown == "0"]))
    """

    found = supervisor(tmp_path, body)

    expected = [2, True, False] if parent == "the supervisor" else [127, False, True]
    assert found == expected


class Link:
    """Fork server of the test: a process that does nothing, and the end of its socket."""

    def __init__(self) -> None:
        self.pid = os.posix_spawn("/bin/sleep", ["sleep", "600"], {})
        own, self.end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server = ForkServer(self.pid, own, TitleArea(0, 4096))

    def start(self) -> ForkedProcess | None:
        """Request a fork with one descriptor."""
        with open(os.devnull, "rb") as file:  # noqa: PTH123 - no path of a user
            return self.server.start(REQUEST, 2, [file.fileno()])

    @property
    def ended(self) -> bool:
        """True if the process has ended and was waited for."""
        try:
            return os.waitpid(self.pid, os.WNOHANG) != (0, 0)
        except ChildProcessError:
            return True

    def close(self) -> None:
        self.server.close()
        self.end.close()


REQUEST = ServiceStart("one", {"A": "b"}, "/", [9])


def test_request_of_a_fork_has_its_fields_and_descriptors() -> None:
    link = Link()
    before = len(list(Path("/proc/self/fd").iterdir()))
    link.end.send(b"4711")

    process = link.start()

    assert process is not None
    assert process.pid == 4711
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    data, descriptors, _, _ = socket.recv_fds(link.end, 10, 10)
    assert (data, len(descriptors)) == (b".", 3)
    with open(descriptors[0], "rb") as file:  # noqa: PTH123 - a descriptor
        assert ServiceStart.decode(file.read()) == REQUEST
    for descriptor in descriptors[1:]:
        os.close(descriptor)
    assert not link.ended
    link.close()
    assert link.ended


@pytest.mark.parametrize("reply", [b"0", b"", b"no number", None])
def test_server_that_forks_nothing_is_closed(
    reply: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reports 0, is at its end, reports something else, or nothing within the limit."""
    monkeypatch.setattr(fork_server, "REPLY_LIMIT_S", 20.0 if reply else 0.0)
    link = Link()
    if reply:
        link.end.send(reply)
    elif reply is not None:
        link.end.shutdown(socket.SHUT_WR)

    assert link.start() is None

    assert link.ended
    assert link.start() is None
    link.close()


def test_process_adopts_no_orphans_after_a_fork() -> None:
    link = Link()
    link.end.send(b"4711")

    link.start()

    adopts = ctypes.c_int(7)
    ctypes.CDLL(None).prctl(GET_CHILD_SUBREAPER, ctypes.byref(adopts))
    assert adopts.value == 0
    link.close()
