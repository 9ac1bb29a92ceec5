"""Pool of processes for searches, each with one BLAS thread."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import TypeAlias

from nni_benchmark.problem import Problem
from nni_benchmark.runs import Run, run
from nni_benchmark.searcher import Searcher

Job: TypeAlias = tuple[Searcher, str, int]
"""Searcher, name of a problem, seed."""
Problems: TypeAlias = Callable[[], Mapping[str, Problem]]
"""Function that returns problems by name, since their functions cannot be pickled."""
Timed: TypeAlias = tuple[Run, float]
"""A run and its CPU seconds."""


def timed_run(searcher: Searcher, problem: Problem, seed: int, trials: int) -> Timed:
    """Run one search; return its run and the CPU seconds that it took."""
    before_s = time.process_time()
    made = run(searcher, problem, seed, trials)
    return made, time.process_time() - before_s


def search_in_processes(
    jobs: Iterable[Job], problems: Problems, trials: int, processes: int, until_s: float
) -> Iterator[Timed]:
    """Start searches in spawned processes until a time; yield each run with CPU time when done.

    Args:
        jobs: jobs in order of start.
        problems: module-level function, called by each process.
        trials: trials of each search.
        processes: number of processes, >= 1; each is spawned, without threads of the caller.
        until_s: monotonic time after which no search starts.

    Raises:
        ImportError: a package of a searcher is missing.
    """
    remaining = iter(jobs)
    open_jobs: set[Future[Timed]] = set()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_prepare) as pool:
        while True:
            while len(open_jobs) < processes and time.monotonic() <= until_s:
                job = next(remaining, None)
                if job is None:
                    break
                open_jobs.add(pool.submit(_searched, *job, problems, trials))
            if not open_jobs:
                return
            done, open_jobs = wait(open_jobs, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def _prepare() -> None:
    """In a worker process, limit BLAS to one thread, and end when the parent ends."""
    caller = multiprocessing.parent_process()
    assert caller is not None  # runs in a process of the pool

    def exit_with_caller() -> None:
        # The pipe of jobs stays open, since the other processes hold it too.
        caller.join()
        os._exit(1)

    threading.Thread(target=exit_with_caller, name="caller", daemon=True).start()
    with contextlib.suppress(ImportError):  # an optional dependency
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def _searched(
    searcher: Searcher, problem: str, seed: int, problems: Problems, trials: int
) -> Timed:
    return timed_run(searcher, problems()[problem], seed, trials)
