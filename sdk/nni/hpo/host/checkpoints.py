"""What an algorithm knew at some event, on disk, so that its next life need not work it out again.

A checkpoint only saves time: the log is the truth, a missing or foreign checkpoint means that the
algorithm is fed from the beginning. It is the JSON that the algorithm's own `state()` gives.
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nni.hpo.json_value import plain_value

_logger = logging.getLogger(__name__)

LEAST_WORK_S: Final = 0.25
"""CPU time that must have been spent since the last checkpoint: what a replay may cost again."""
_WORK_PER_COST: Final = 5.0
"""A checkpoint may cost a fifth of the work that it saves. With 10,000 results one costs 0.07 s, so
that a replay does 0.4 s of work again at most; see `tests/benchmarks/bench_recovery.py`."""


@dataclass(slots=True)
class CheckpointSchedule:
    """Says when a checkpoint is worth its cost.

    Args:
        work_s: CPU time of this process, ever growing.
    """

    work_s: Callable[[], float] = time.process_time
    _last_s: float = 0.0
    _cost_s: float = 0.0

    def __call__(self) -> bool:
        """Whether enough work was done since the last checkpoint."""
        return self.work_s() - self._last_s > max(LEAST_WORK_S, _WORK_PER_COST * self._cost_s)

    def taken(self, began_s: float) -> None:
        """Learn that a checkpoint was taken, begun at ``began_s`` of `work_s`."""
        self._last_s = self.work_s()
        self._cost_s = self._last_s - began_s


class CheckpointFile:
    """The one checkpoint of an experiment's algorithm.

    Args:
        path: its file; the folder is made when needed. None = there is none and none is taken.
        identity: what must be the same for a checkpoint to fit: log, configuration, version.
    """

    def __init__(self, path: Path | None, identity: dict[str, Any]) -> None:
        self._path = path
        self._identity = json.loads(json.dumps(identity))

    @property
    def wanted(self) -> bool:
        """Whether checkpoints are taken at all."""
        return self._path is not None

    def load(self) -> tuple[list[int], dict[str, Any]] | None:
        """Return position and state of the checkpoint; None if there is none that fits."""
        if self._path is None:
            return None
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            if kept["identity"] == self._identity:
                return kept["position"], kept["state"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            _logger.warning("the checkpoint %s cannot be used: %s", self._path, error)
        return None

    def save(self, position: list[int], state: dict[str, Any]) -> None:
        """Replace the checkpoint; a full disk costs the checkpoint and no more."""
        if self._path is None:
            return
        text = json.dumps(
            {"identity": self._identity, "position": position, "state": state},
            default=plain_value,
        )
        temporary = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self._path)
        except OSError as error:
            _logger.warning("no checkpoint written to %s: %s", self._path, error)
