"""Pair of pipes between dispatcher and host: batches of JSON lines."""

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
"""Longest delay of a completion report while more commands wait: saves a system call and a wake-up
of the dispatcher for each of many small commands."""


class CommandPipe:
    """JSON-lines pipes to the dispatcher: yields commands, reports completion, writes messages.

    Messages are written at once; completion of commands is reported when no more commands wait, or
    after a few milliseconds. `write` may be called from any thread, other methods from the thread
    that iterates.

    Args:
        in_fd: read end of the command pipe; its end of file ends the host.
        out_fd: write end of the message pipe.
    """

    def __init__(self, in_fd: int, out_fd: int) -> None:
        # Child processes of the algorithm must not hold the pipes open.
        for descriptor in (in_fd, out_fd):
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - positional only
        self._in_fd = in_fd
        self._out_fd = out_fd
        self._lock = threading.Lock()
        self._position: list[int] | None = None
        self._reported_at_s = 0.0
        self._unfinished: list[bytes] = []
        self.eager = False
        """True if every completion is reported at once, so that a crash identifies its command."""
        self.idle: Callable[[], None] = _do_nothing
        """Callback after each batch when no more commands wait; not called while eager."""

    def commands(self) -> Iterator[dict[str, Any]]:
        """Yield commands until the pipe closes; report each as completed once the next is wanted.

        A command counts as completed when the next one is requested.
        """
        while chunk := os.read(self._in_fd, _READ_BYTES):
            # Parsed as one array: a replay has tens of thousands of small commands.
            for command in json.loads(b"[%b]" % b",".join(self._whole_lines(chunk))):
                yield command
                self._position = command.get("position", self._position)
                if self.eager or time.monotonic() - self._reported_at_s > _REPORT_DELAY_S:
                    self._report_done()
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
        """Write one message as a JSON line at once; safe from any thread.

        Raises:
            TypeError: a value in `message` has no JSON form.
            BrokenPipeError: the dispatcher has ended.
        """
        line = json.dumps(message, default=plain_value, separators=(",", ":")) + "\n"
        with self._lock:
            self._write(line.encode())

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
    """Do nothing."""
