"""Searches in several processes at once, each with one thread for its arithmetic."""

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
"""Who searches, name of a problem, seed."""
Problems: TypeAlias = Callable[[], Mapping[str, Problem]]
"""Gives problems by name: they hold functions, which do not travel between processes."""
Timed: TypeAlias = tuple[Run, float]
"""A run and the CPU seconds that it took."""


def timed_run(searcher: Searcher, problem: Problem, seed: int, trials: int) -> Timed:
    """Search once."""
    before_s = time.process_time()
    made = run(searcher, problem, seed, trials)
    return made, time.process_time() - before_s


def searched_in_processes(
    jobs: Iterable[Job], problems: Problems, trials: int, processes: int, until_s: float
) -> Iterator[Timed]:
    """Yield the runs of jobs as they end.

    Args:
        jobs: started in this order.
        problems: a function of a module, which each process calls for itself.
        trials: of each search.
        processes: how many, >= 1; each is started anew, so that none has threads of the caller's.
        until_s: no search is started after this moment of the monotonic clock.

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
    """Keep pools of threads from fighting over the cores, and end when the caller is killed."""
    caller = multiprocessing.parent_process()
    assert caller is not None  # this is a process of a pool

    def end_with_it() -> None:
        # The pipe that work comes through stays open, since the other processes hold it too.
        caller.join()
        os._exit(1)

    threading.Thread(target=end_with_it, name="caller", daemon=True).start()
    with contextlib.suppress(ImportError):  # it comes with scikit-learn only
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def _searched(
    searcher: Searcher, problem: str, seed: int, problems: Problems, trials: int
) -> Timed:
    return timed_run(searcher, problems()[problem], seed, trials)
