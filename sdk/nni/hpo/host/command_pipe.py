"""The two pipes between dispatcher and host: JSON lines, many at a time."""

import json
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from nni.hpo.json_value import plain_value

_READ_BYTES: Final = 1 << 20
_REPORT_DELAY_S: Final = 0.005
"""How long handled commands may go unreported while more are waiting: saves a system call and a
wake-up of the dispatcher for each of a crowd of small commands."""


class CommandPipe:
    """Reads commands and writes answers.

    What an algorithm says is written at once; that a command is done is told together with it, or
    when no more commands are waiting, or after a few milliseconds. `write` may be called from any
    thread, the rest from the one that iterates.

    Args:
        in_fd: read end of the command pipe; its end of file is the end of the host.
        out_fd: write end of the answer pipe.
    """

    def __init__(self, in_fd: int, out_fd: int) -> None:
        # What the algorithm starts must not hold the pipes open.
        for descriptor in (in_fd, out_fd):
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - positional only
        self._in_fd = in_fd
        self._out_fd = out_fd
        self._lock = threading.Lock()
        self._position: list[int] | None = None
        self._reported_at_s = 0.0
        self._unfinished: list[bytes] = []
        self.eager = False
        """Report every command at once: after a death it must be known which command it was."""
        self.idle: Callable[[], None] = _do_nothing
        """Called whenever no more commands wait, once after each crowd of them; not while eager."""

    def commands(self) -> Iterator[dict[str, Any]]:
        """Give one command after another until the dispatcher closes the pipe.

        A command counts as done when the next one is asked for.
        """
        while chunk := os.read(self._in_fd, _READ_BYTES):
            # Parsed together: a replay has tens of thousands of small commands.
            for command in json.loads(b"[%b]" % b",".join(self._whole_lines(chunk))):
                yield command
                self._handled(command.get("position"))
            self._report_done()
            if not self.eager and not self._more_wait():
                self.idle()

    def _more_wait(self) -> bool:
        return bool(select.select([self._in_fd], [], [], 0)[0])

    def _whole_lines(self, chunk: bytes) -> list[bytes]:
        self._unfinished.append(chunk)
        if b"\n" not in chunk:
            return []
        *lines, rest = b"".join(self._unfinished).split(b"\n")
        self._unfinished = [rest]
        return lines

    def write(self, message: dict[str, Any]) -> None:
        """Write one answer now.

        Raises:
            TypeError: something in `message` has no JSON form.
            BrokenPipeError: the dispatcher is gone.
        """
        line = json.dumps(message, default=plain_value, separators=(",", ":")) + "\n"
        with self._lock:
            self._write(line.encode())

    def _handled(self, position: list[int] | None) -> None:
        if position is None:
            return
        self._position = position
        if self.eager or time.monotonic() - self._reported_at_s > _REPORT_DELAY_S:
            self._report_done()

    def _report_done(self) -> None:
        position, self._position = self._position, None
        if position is not None:
            self._reported_at_s = time.monotonic()
            self.write({"done": position})

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._out_fd, view) :]


def _do_nothing() -> None:
    """Be idle."""
