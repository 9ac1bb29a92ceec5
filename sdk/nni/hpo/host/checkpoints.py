"""Checkpoints of an algorithm's state on disk, which shorten the replay after a restart.

A checkpoint only saves time: the log is authoritative, and without a fitting checkpoint the whole
log is replayed. A checkpoint is the JSON of the algorithm's `state()`, with a digest of the
commands that it had received. A checkpoint beyond the end of the log, or whose digest differs from
that of the log, has outlived a part of the log that a cut of power took: it is refused.
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nni.durable_files import write_whole
from nni.hpo.json_value import plain_value

_logger = logging.getLogger(__name__)

LEAST_WORK_S: Final = 0.25
"""Least CPU time between checkpoints, which a replay may repeat."""
_WORK_PER_COST: Final = 5.0
"""CPU time between checkpoints, as a multiple of the cost of one. With 10,000 results a checkpoint
costs 0.07 s, so that a replay repeats at most 0.4 s; see `tests/benchmarks/bench_recovery.py`."""


@dataclass(slots=True)
class CheckpointSchedule:
    """Schedule of checkpoints by the CPU time since the last one and the cost of one.

    Args:
        work_s: clock of the CPU time of this process.
    """

    work_s: Callable[[], float] = time.process_time
    _last_s: float = 0.0
    _cost_s: float = 0.0

    def __call__(self) -> bool:
        """Return whether CPU time since the last checkpoint exceeds 0.25 s and 5 times its cost."""
        return self.work_s() - self._last_s > max(LEAST_WORK_S, _WORK_PER_COST * self._cost_s)

    def taken(self, began_s: float) -> None:
        """Record that a checkpoint has ended, and its cost: the CPU time since ``began_s``."""
        self._last_s = self.work_s()
        self._cost_s = self._last_s - began_s


class CheckpointFile:
    """File of the latest checkpoint of an experiment's algorithm.

    Args:
        path: path of the file, whose folder is created when needed. None disables checkpoints.
        identity: values that must agree for a checkpoint to fit: log, configuration, versions.
    """

    def __init__(self, path: Path | None, identity: dict[str, Any]) -> None:
        self._path = path
        self._identity = json.loads(json.dumps(identity))
        self.digest = 0
        """Digest of the commands before the loaded checkpoint."""

    @property
    def enabled(self) -> bool:
        """True if checkpoints are enabled."""
        return self._path is not None

    def load(self, log_end: list[int] | None = None) -> tuple[list[int], dict[str, Any]] | None:
        """Return position and state of a fitting checkpoint, or None; discard one beyond the log.

        Args:
            log_end: position of the last event of the log; a checkpoint beyond it is discarded.
                None: unknown.
        """
        if self._path is None:
            return None
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            if content["identity"] == self._identity:
                position, state, self.digest = (
                    content[key] for key in ("position", "state", "digest")
                )
                if log_end is None or position <= log_end:
                    return position, state
                self.discard(f"it is of event {position}, and the log ends at {log_end}")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            _logger.warning("the checkpoint %s cannot be used: %s", self._path, error)
        return None

    def discard(self, reason: str) -> None:
        """Log why the checkpoint is refused, and delete it; a failed deletion is only logged."""
        if self._path is None:
            return
        _logger.warning(
            "the checkpoint %s is refused: %s; the log has lost its end since, as by a cut of "
            "power, and the algorithm is made anew from the log",
            self._path,
            reason,
        )
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            _logger.warning("the checkpoint %s cannot be deleted: %s", self._path, error)

    def save(self, position: list[int], state: dict[str, Any], digest: int = 0) -> None:
        """Replace the checkpoint; log and ignore a failed write, as of a full disk."""
        if self._path is None:
            return
        text = json.dumps(
            {
                "identity": self._identity,
                "position": position,
                "digest": digest,
                "state": state,
            },
            default=plain_value,
        )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, text)
        except OSError as error:
            _logger.warning("no checkpoint written to %s: %s", self._path, error)
