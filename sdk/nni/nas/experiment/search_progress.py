"""Progress of a search on the terminal: models that have ended, the best one, time left."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import IO, Any, Final

from nni.experiment.progress import duration_words
from nni.nas.space import ExecutableModelSpace, ModelStatus

INTERVAL_S: Final = 2.0
"""Least time between two lines."""


class SearchProgress:
    """Writer of a line to a terminal when models have ended, at most every two seconds.

    It writes lines, and no bar that changes, since evaluators may have bars of their own. Methods
    may be called from any thread.

    Args:
        stream: terminal; nothing is written to another stream.
        limit: number of models of the search; None for no limit.
        clock_s: function that returns seconds, never going back.
    """

    def __init__(
        self,
        stream: IO[str],
        limit: int | None = None,
        *,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream if stream.isatty() else None
        self._limit = limit
        self._clock_s = clock_s
        self._lock = threading.Lock()  # of what follows
        self._start_s = clock_s()
        self._written_at_s = -math.inf
        self._is_written = True
        self._earlier = 0
        self._ended = 0
        self._failed = 0
        self._best: float | None = None
        self._best_number = 0

    def restore(self, models: Iterable[ExecutableModelSpace]) -> None:
        """Count the models of the search that is resumed; they do not change the rate."""
        with self._lock:
            for model in models:
                self._count(model.status, model.metric)
            self._earlier = self._ended

    def model_ended(self, status: ModelStatus, metric: Any) -> None:  # noqa: ANN401 - of any type
        """Count a model, and write a line if the last one is old enough."""
        with self._lock:
            self._count(status, metric)
            self._is_written = False
            if self._clock_s() - self._written_at_s >= INTERVAL_S:
                self._write()

    def close(self) -> None:
        """Write the last state, unless it is written already."""
        with self._lock:
            if not self._is_written:
                self._write()

    def line(self) -> str:
        """Return models ended and failed, best metric and time left as one line of text."""
        total = "" if self._limit is None else f"/{self._limit}"
        parts = [f"{self._ended}{total} models", f"{self._failed} failed"]
        if self._best is not None:
            parts.append(f"best {self._best:.6g} (model {self._best_number})")
        new, elapsed_s = self._ended - self._earlier, self._clock_s() - self._start_s
        if self._limit is not None and new and self._ended < self._limit:
            left_s = (self._limit - self._ended) * elapsed_s / new
            parts.append(f"about {duration_words(left_s)} left")
        return ", ".join(parts)

    def _count(self, status: ModelStatus, metric: Any) -> None:  # noqa: ANN401 - of any type
        self._failed += status is not ModelStatus.Trained
        is_number = isinstance(metric, int | float) and not math.isnan(metric)
        if is_number and (self._best is None or metric > self._best):
            self._best, self._best_number = float(metric), self._ended
        self._ended += 1

    def _write(self) -> None:
        self._written_at_s = self._clock_s()
        self._is_written = True
        if self._stream is not None:
            self._stream.write(f"{self.line()}\n")
            self._stream.flush()
