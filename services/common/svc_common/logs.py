"""How services log: structlog, one JSON object a line, to stderr.

The event is a fixed phrase and facts are keys: `log.info("trial started", trial=trial_id)`. Ids are
bound once, where the work on something begins (`bind_task`, `bound`), and stand in every line that
the work writes, whoever writes it: `experiment`, `trial`, `attempt`, `request`, `trace`.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

# What structlog can draw on terminals makes it import rich where that is installed: 45 ms and 5 MB
# of every service's start, for lines that are JSON.
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


def configure(service: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Set up logging of this process; called once by `lifecycle.run_process`.

    Args:
        service: name of the service, in every line.
        level: least level that is written: debug, info, warning or error.
        stream: where to; None = stderr.
    """
    target = sys.stderr if stream is None else stream
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
    # What libraries log (uvicorn, asyncio) goes the same way, warnings and worse only.
    logging.basicConfig(level=max(threshold, logging.WARNING), stream=target, force=True)


def get_logger() -> FilteringBoundLogger:
    """Give a logger; cheap, and may be called before `configure`."""
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def bind_task(**facts: str | int) -> None:
    """Have these facts in every line of the present task, and of tasks that it starts from now on.

    To be called where a task of its own begins: what is bound lasts as long as it.
    """
    bind_contextvars(**facts)


@contextmanager
def bound(**facts: str | int) -> Iterator[None]:
    """Have these facts in every line that is written in the block, tasks it starts included."""
    with bound_contextvars(**facts):
        yield
