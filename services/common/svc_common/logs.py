"""Structured logs of services: structlog, one JSON object per line, to stderr.

The event is a fixed phrase and facts are keys: `log.info("trial started", trial=trial_id)`. Ids
are bound once, where the work on an object begins (`bind_task`, `bound`), and stand in every line
of that work: `experiment`, `trial`, `attempt`, `request`, `trace`.

Logging never raises: a line that cannot be written (the disk is full or read-only) is dropped, and
the number of dropped lines is written as soon as that works again.
"""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO, cast

# structlog imports rich, if that is installed, for output on terminals: 45 ms and 5 MB at the start
# of every service, whose lines are JSON.
_rich_is_new: Final = "rich" not in sys.modules
if _rich_is_new:
    sys.modules["rich"] = None  # type: ignore[assignment] # how Python marks what cannot be imported
import structlog  # noqa: E402 - it must not find rich
from structlog.contextvars import bind_contextvars, bound_contextvars  # noqa: E402 - as above
from structlog.typing import FilteringBoundLogger  # noqa: E402 - as above

if _rich_is_new:
    del sys.modules["rich"]

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class LineWriter:
    """Line-buffered text stream that drops lines its target cannot take, such as a full disk.

    Args:
        target: stream that is written and flushed line by line.
    """

    def __init__(self, target: TextIO) -> None:
        self._target = target
        self._line = ""
        self._dropped = 0

    def write(self, text: str) -> int:
        """Write the complete lines of the text to the target; keep the rest for the next call."""
        self._line += text
        lines, newline, self._line = self._line.rpartition("\n")
        if newline:
            self._write(lines + newline)
        return len(text)

    def flush(self) -> None:
        """Do nothing: lines are flushed when they are written."""

    def _write(self, lines: str) -> None:
        try:
            if self._dropped:
                note = {"event": "log lines lost", "level": "error", "count": self._dropped}
                self._target.write(json.dumps(note) + "\n")
                self._target.flush()
                self._dropped = 0
            self._target.write(lines)
            self._target.flush()
        except (OSError, ValueError):  # the disk is full or read-only; the stream is closed
            self._dropped += lines.count("\n")


def configure(service: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Configure structlog to write JSON lines from a level on, and logging to send it its warnings.

    Args:
        service: name of the service, in every line.
        level: lowest level that is written: debug, info, warning or error.
        stream: destination; None: stderr.
    """
    target = cast("TextIO", LineWriter(sys.stderr if stream is None else stream))
    threshold = _LEVELS.get(level.lower(), logging.INFO)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=True,
    )
    bind_contextvars(service=service)
    # Libraries (uvicorn, asyncio) log to the same stream, warnings and errors only.
    logging.basicConfig(level=max(threshold, logging.WARNING), stream=target, force=True)


def get_logger() -> FilteringBoundLogger:
    """Return a logger; may be called before `configure`."""
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def bind_task(**facts: str | int) -> None:
    """Add fields to every log line of the current task and of tasks that it starts later.

    To be called at the start of a task: the fields stay bound until it ends.
    """
    bind_contextvars(**facts)


@contextmanager
def bound(**facts: str | int) -> Iterator[None]:
    """Add fields to every log line of the block and of tasks that it starts."""
    with bound_contextvars(**facts):
        yield
