"""How services log: structlog, one JSON object a line, to stderr.

The event is a fixed phrase and facts are keys: `log.info("trial started", trial=trial_id)`. Bind
ids once at the rim: `log = get_logger().bind(experiment=experiment_id)`.
"""

import logging
import sys
from typing import Final, TextIO

import structlog
from structlog.typing import FilteringBoundLogger

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
    structlog.contextvars.bind_contextvars(service=service)
    # What libraries log (uvicorn, asyncio) goes the same way, warnings and worse only.
    logging.basicConfig(level=max(threshold, logging.WARNING), stream=target, force=True)


def get_logger() -> FilteringBoundLogger:
    """Give a logger; cheap, and may be called before `configure`."""
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger
