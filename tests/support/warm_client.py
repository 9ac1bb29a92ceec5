"""Client of the warm interpreter's control socket, in the role of the agent."""

from __future__ import annotations

import array
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import nni.trial

WARM_FILE = Path(nni.trial.__file__).with_name("warm.py")
TITLE_ROOM = 4096
EVENT_TIMEOUT_S = 45.0


@dataclass(frozen=True, slots=True)
class Ended:
    """Exit code and output of a trial."""

    pid: int
    code: int
    """Exit code, or minus the number of the signal that ended it."""
    stdout: str
    stderr: str


class WarmClient:
    """Warm interpreter and its control socket. Not thread-safe."""

    def __init__(
        self,
        cwd: Path,
        *,
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        local, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control = local
        self.control.settimeout(EVENT_TIMEOUT_S)
        self.process = subprocess.Popen(
            [python, str(WARM_FILE), str(remote.fileno()), " " * TITLE_ROOM],
            cwd=cwd,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            pass_fds=[remote.fileno()],
            start_new_session=True,
        )
        remote.close()
        self._cwd = cwd
        self._pending: list[dict[str, Any]] = []
        self.wait_event("ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket, which ends the interpreter and its trials."""
        self.control.close()
        self.process.wait(EVENT_TIMEOUT_S)

    def send(self, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Send one message with descriptors beside it."""
        ancillary = [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())
        ]
        self.control.sendmsg([json.dumps(message).encode()], ancillary if descriptors else [])

    def receive(self) -> dict[str, Any]:
        """Return the next event from the socket."""
        data = self.control.recv(1 << 18)
        if not data:
            raise EOFError("the warm interpreter is gone")
        event: dict[str, Any] = json.loads(data)
        return event

    def wait_event(self, kind: str, **fields: object) -> dict[str, Any]:
        """Return the first event of a kind with these fields; buffer the others."""
        for index, event in enumerate(self._pending):
            if matches(event, kind, fields):
                return self._pending.pop(index)
        while True:
            event = self.receive()
            if matches(event, kind, fields):
                return event
            self._pending.append(event)

    def start(self, argv: Sequence[str], *, trial: str = "t/1", **fields: Any) -> tuple[int, int]:
        """Start a trial; return the read ends of its stdout and stderr."""
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        message = {"op": "start", "id": trial, "argv": list(argv), "cwd": str(self._cwd), **fields}
        self.send(message, [out_end, err_end])
        os.close(out_end)
        os.close(err_end)
        return out, err

    def run(self, argv: Sequence[str], *, trial: str = "t/1", **fields: Any) -> Ended:
        """Run a trial to its end; its output must fit into a pipe's buffer."""
        out, err = self.start(argv, trial=trial, **fields)
        exited = self.wait_event("exited", id=trial)
        with os.fdopen(out, encoding="utf-8") as stdout, os.fdopen(err, encoding="utf-8") as stderr:
            code = os.waitstatus_to_exitcode(exited["status"])
            return Ended(exited["pid"], code, stdout.read(), stderr.read())


def matches(event: Mapping[str, Any], kind: str, fields: Mapping[str, object]) -> bool:
    """Return whether an event is of a kind and has these fields."""
    return event["event"] == kind and all(event.get(key) == value for key, value in fields.items())
