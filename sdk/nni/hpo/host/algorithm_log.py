"""Format and level of `dispatcher.log`, which is where the host's stdout and stderr go."""

import logging
from typing import Final

FORMAT: Final = "[%(asctime)s] %(levelname)s (%(name)s/%(threadName)s) %(message)s"
DATE_FORMAT: Final = "%Y-%m-%d %H:%M:%S"

_LEVELS: Final = {
    "trace": 1,  # level 0 would mean "as the parent logger", and the root has none
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}


def configure(level: str) -> None:
    """Let all loggers of this process write to stderr.

    Args:
        level: trace, debug, info, warning, error or fatal.
    """
    logging.basicConfig(
        level=_LEVELS.get(level, logging.INFO), format=FORMAT, datefmt=DATE_FORMAT, force=True
    )
