"""Log file of an experiment in this process."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

_FORMAT: Final = "[%(asctime)s] %(levelname)s (%(name)s/%(threadName)s) %(message)s"


class ExperimentLogFile:
    """File that gets the records of the logger `nni` until it is closed.

    Args:
        path: file to append to; its folder is made.
        debug: whether debug records are written.
    """

    def __init__(self, path: Path, *, debug: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._logger = logging.getLogger("nni")
        self._level = self._logger.level
        self._handler = logging.FileHandler(path, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter(_FORMAT))
        self._handler.setLevel(logging.DEBUG if debug else logging.INFO)
        self._logger.addHandler(self._handler)
        self._logger.setLevel(min(self._logger.getEffectiveLevel(), self._handler.level))

    def close(self) -> None:
        """Stop writing, and restore the logger's level; calling it again does nothing."""
        if self._handler in self._logger.handlers:
            self._logger.removeHandler(self._handler)
            self._logger.setLevel(self._level)
            self._handler.close()
