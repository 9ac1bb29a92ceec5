"""Processes that evaluate objectives which compute in Python."""

import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from nni.hpo.json_value import JsonValue


class TrialProcesses:
    """Processes for trials; all are replaced when one of them dies, which breaks their pool."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._pool = self._started()

    def call(self, objective: Callable[..., Any], *arguments: Any, **keywords: Any) -> JsonValue:  # noqa: ANN401 - of the objective
        """Return an objective's result from a process; raise its error, or BrokenProcessPool."""
        pool = self._pool
        try:
            return pool.submit(objective, *arguments, **keywords).result()
        except BrokenProcessPool:
            self._replace(pool)
            raise

    def close(self) -> None:
        """Wait for trials that run, then end the processes."""
        self._pool.shutdown()

    def _started(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._count, mp_context=get_context("spawn"))

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is broken:  # else another trial of it came first
                broken.shutdown(wait=False)
                self._pool = self._started()
