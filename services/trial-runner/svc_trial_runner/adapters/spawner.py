"""Spawner of plain commands for the agent: a small process of one thread.

Standard library only, run by path: `python spawner.py FD`. It speaks the messages of a warm
interpreter (`docs/trial-protocol.md`) on an inherited `SOCK_SEQPACKET`, with two differences:
`argv` is a program on the PATH and its arguments, and `{"op": "base", "id", "environment"}`
names a set of variables that later starts refer to as `base`.

Why not the agent itself: forking a large process with the threads of gRPC is slow and may lock up,
and only a fork can ask the kernel to end the child with its parent before the command runs.
"""

import array
import ctypes
import json
import os
import select
import signal
import socket
import sys
from typing import Any, Final, NoReturn

MESSAGE_LIMIT_BYTES: Final = 256 * 1024
_PR_SET_PDEATHSIG: Final = 1
_CANNOT_EXECUTE: Final = 126
_LIBC: Final = ctypes.CDLL(None)


class Spawner:
    """Small process that forks commands on the agent's request and reports their ends.

    Args:
        control: socket to the agent; the process ends when it is closed.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._bases: dict[str, dict[str, str]] = {}
        self._running: dict[int, str] = {}
        self._on_hangup = signal.getsignal(signal.SIGHUP)
        """Disposition that commands have; ignored under nohup."""

    def serve(self) -> NoReturn:
        """Start commands that the agent requests and report their ends, until its socket closes."""
        wake, wake_out = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wake_out, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # It ends with the agent's socket; on TERM, or HUP, to all processes it still reports ends.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(wake, select.POLLIN)
        self._send({"event": "ready", "pid": os.getpid(), "preloaded": []})
        while True:
            for number, _ in poller.poll():
                if number == wake:
                    _drain(wake)
                    self._reap()
                else:
                    self._receive()

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._control.send(json.dumps(message).encode())
        except OSError:
            os._exit(0)  # the agent has ended

    def _receive(self) -> None:
        data, control, _, _ = self._control.recvmsg(
            MESSAGE_LIMIT_BYTES, socket.CMSG_SPACE(16), socket.MSG_CMSG_CLOEXEC
        )
        if not data:
            os._exit(0)
        descriptors = array.array("i")
        for level, kind, content in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(content)
        message = json.loads(data)
        operation = message["op"]
        if operation == "base":
            self._bases[message["id"]] = message["environment"]
        elif operation == "forget":
            self._bases.pop(message["id"], None)
        elif operation == "quit":
            os._exit(0)
        elif operation == "start":
            try:
                self._start(message, list(descriptors))
            except (KeyError, ValueError, TypeError, OSError) as error:
                self._send({"event": "refused", "id": message["id"], "reason": str(error)})
        for descriptor in descriptors:
            os.close(descriptor)

    def _start(self, message: dict[str, Any], descriptors: list[int]) -> None:
        environment = {**self._bases[message["base"]], **message["environment"]}
        if not os.path.isdir(message["cwd"]):  # noqa: PTH112 - pathlib costs memory here
            raise NotADirectoryError(f"no such directory: {message['cwd']}")
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become(message, environment, descriptors, parent)
        self._running[pid] = message["id"]

    def _become(
        self,
        message: dict[str, Any],
        environment: dict[str, str],
        descriptors: list[int],
        parent: int,
    ) -> NoReturn:
        """In the forked child: set session, output, directory; report the start, execute argv."""
        try:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(_CANNOT_EXECUTE)
            os.setsid()
            # Before the report: a signal that follows it must not be ignored.
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, self._on_hangup)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            pid = os.getpid()
            # Reported from here: the receiver may signal the group, so the group must exist.
            self._send(
                {
                    "event": "started",
                    "id": message["id"],
                    "pid": pid,
                    "start_time": _start_time(pid),
                }
            )
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(descriptors[0], 1)
            os.dup2(descriptors[1], 2)
            os.chdir(message["cwd"])
            os.execvpe(message["argv"][0], message["argv"], environment)  # noqa: S606 - its purpose
        except BaseException as error:  # noqa: BLE001 - reported on the trial's stderr
            os.write(2, f"nni: the trial cannot be started: {error}\n".encode())
            os._exit(_CANNOT_EXECUTE)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            name = self._running.pop(pid, None)
            if name is not None:
                self._send({"event": "exited", "id": name, "pid": pid, "status": status})


def _start_time(pid: int) -> int:
    """Return field 22 of a process's stat: its start, in clock ticks; OSError: there is none."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
        return int(file.read().rpartition(b")")[2].split()[19])


def _drain(descriptor: int) -> None:
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        return


def main() -> NoReturn:
    """Run the spawner on an inherited socket; it is killed when its parent dies."""
    parent = int(sys.argv[2])
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    Spawner(control).serve()


if __name__ == "__main__":
    main()
