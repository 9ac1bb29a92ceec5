"""Fork server: a process that imports the modules that services share, and forks once per service.

Imports are most of the time and memory of a service that starts. A fork has the shared modules
already, and shares their memory with its siblings until it is written to. The server ends as soon
as all services are ready; a service that is restarted or starts later is a program of its own, and
so is each one if the server fails.

What makes these forks safe: the server is forked from the supervisor before that has a secret, a
socket or an event loop; it has one thread, and no object of gRPC; it can be inspected by no other
process; a fork has none of its descriptors but those of the service. Each service is a child of the
supervisor, as a program would be: the server forks twice, the process between the two ends, and
the kernel gives its child to the supervisor.
"""

import ctypes
import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from svc_common.inspection import forbid_inspection
from svc_standalone.forked_service import (
    CANNOT_RUN,
    ServiceStart,
    TitleArea,
    become_service,
    end_with,
    run_service,
)

SHARED_MODULES: Final = (
    "svc_common.lifecycle",
    "svc_common.messaging.nats_bus",
    "svc_common.rpc.client",
    "svc_common.rpc.server",
    "svc_common.access.delegation",
    "svc_common.access.security",
    "svc_common.storage.directory",
    "svc_common.storage.factory",
    "svc_common.telemetry.tracing",
)
"""Modules that each service of the first start imports, with all that they import."""
REPLY_LIMIT_S: Final = 30.0
"""Time limit of imports and fork, after which services are started as programs."""
_DESCRIPTORS_LIMIT: Final = 64
_REPLY_BYTES: Final = 32
_PR_SET_CHILD_SUBREAPER: Final = 36


class ForkedProcess:
    """Handle of a forked child: `pid`, signals and blocking `wait`, as of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def send_signal(self, number: int) -> None:
        """Send a signal; `wait` must not have returned."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Send KILL; `wait` must not have returned."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send TERM; `wait` must not have returned."""
        self.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait for the end, once; return the exit status, or the negative number of a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class ForkServer:
    """Handle of a fork server's process: `start` has it fork a service, `close` ends it.

    Args:
        pid: of the server.
        link: socket to it.
        title: of this process, and so of its forks.

    Example:
        server = start_fork_server(SHARED_MODULES)
        process = server.start(ServiceStart("svc_nas", environment.current(), "/", ()), output, ())
        server.close()
    """

    def __init__(self, pid: int, link: socket.socket, title: TitleArea) -> None:
        self._pid = pid
        self._link = link
        self._title = title
        self._open = True
        link.settimeout(REPLY_LIMIT_S)

    def start(
        self, start: ServiceStart, output: int, descriptors: Sequence[int]
    ) -> ForkedProcess | None:
        """Fork a service; return its handle; None: the caller must start it as a program.

        A server that has ended or does not reply in time is closed.

        Args:
            start: package, environment, folder, and numbers of the descriptors in the service.
            output: descriptor of standard output and standard error.
            descriptors: to inherit, in the order of their numbers in `start`.
        """
        if not self._open or not self._title.has_room(start.title):
            return None
        request = _memory_file(start.encode())
        try:
            with _adopting_orphans():
                socket.send_fds(self._link, [b"."], [request, output, *descriptors])
                pid = int(self._link.recv(_REPLY_BYTES) or b"0")
        except (OSError, ValueError):  # it has ended, or takes too long
            pid = 0
        finally:
            os.close(request)
        if pid == 0:
            self.close()
            return None
        return ForkedProcess(pid)

    def close(self) -> None:
        """End the server's process, not the services; may be called twice."""
        if not self._open:
            return
        self._open = False
        self._link.close()
        os.kill(self._pid, signal.SIGKILL)  # it holds no state
        os.waitpid(self._pid, 0)


def start_fork_server(modules: Sequence[str]) -> ForkServer | None:
    """Fork a server that imports modules; None if forks would differ from new interpreters.

    In a forked service this function runs the service, and does not return. To be called by the
    main thread of a process that has no other one, no secrets, and no event loop.

    Args:
        modules: that all services import.

    Raises:
        SystemExit: in a forked service only, with its exit status.
    """
    # A fork has the search path of this process: it must be that of `python -P`.
    if not sys.flags.safe_path or None in (sys.stdin, sys.stdout, sys.stderr):
        return None
    title = TitleArea.of_this_process()
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        there.close()
        return ForkServer(pid, here, title)
    try:
        here.close()
        if not end_with(supervisor):
            os._exit(CANNOT_RUN)
        os.setsid()  # no signal of a terminal ends it
        _close_all_but(there)
        forbid_inspection()
        _import(modules)
        start = become_service(serve(there, supervisor), title)
    except BaseException:  # noqa: BLE001 - this fork must never go on as a supervisor
        os._exit(CANNOT_RUN)
    return run_service(start)


def serve(link: socket.socket, supervisor: int, fork: Callable[[], int] = os.fork) -> list[int]:
    """Fork a supervisor's child per request, there return its descriptors; exit at the link's end.

    Args:
        link: socket over which requests come; a fork writes its process id to it.
        supervisor: process id of the supervisor, which becomes the parent of each fork.
        fork: forks this process.
    """
    while True:
        data, received, _, _ = socket.recv_fds(link, 1, _DESCRIPTORS_LIMIT)
        if not data:
            os._exit(0)
        reader, writer = os.pipe()
        between = fork()
        if between == 0:
            if fork() != 0:
                os._exit(0)
            os.close(writer)
            os.read(reader, 1)  # until the process between has ended: then the parent is another
            os.close(reader)
            _report(link, supervisor)
            return received
        os.close(reader)
        os.waitpid(between, 0)
        os.close(writer)
        for descriptor in received:
            os.close(descriptor)


def _report(link: socket.socket, supervisor: int) -> None:
    if not end_with(supervisor):
        link.send(b"0")
        os._exit(CANNOT_RUN)
    link.send(str(os.getpid()).encode())
    link.close()


def _close_all_but(link: socket.socket) -> None:
    """Close all descriptors but standard streams and a socket."""
    kept = (0, 1, 2, link.fileno())
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - no path of a user
        if number not in kept:
            with suppress(OSError):  # that of the folder
                os.close(number)


def _import(modules: Sequence[str]) -> None:
    """Import modules; keep the garbage collector from writing to their memory ever after."""
    gc.disable()
    for name in modules:
        importlib.import_module(name)
    gc.freeze()


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("nni")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Make orphaned descendants children of this process while the context is open.

    Not for longer: orphans of trials would become its children, which it does not wait for.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0)
