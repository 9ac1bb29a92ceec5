"""Offline suite: all problems, searchers and schedulers, and runs over them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import takewhile
from typing import Final

from nni.hpo.registry.factory import find
from nni.hpo.registry.validation import check_count
from nni_benchmark.peers import peer_searchers
from nni_benchmark.peers.syne_tune_peer import syne_tune_schedulers
from nni_benchmark.problem import Problem
from nni_benchmark.processes import search_in_processes, timed_run
from nni_benchmark.runs import Run, Runs, installed, run, versions
from nni_benchmark.schedulers import Scheduler, our_schedulers, run_schedule
from nni_benchmark.searcher import PARALLEL_MARK, Searcher, TunerSearcher, tuner_searchers
from nni_benchmark.synthetic import synthetic_problems
from nni_benchmark.tables import CURVES, path_of, read_text, table_problems

CELLS: Final = (50, 100, 200)
"""Numbers of trials after which regrets are compared."""
SCHEDULER_CELLS: Final = (5, 10, 25, 50, 100)
"""Time steps (hundredths) after which schedulers are compared."""
CLASSIC: Final = ("branin", "hartmann6", "ackley10", "rosenbrock5", "digits")
"""Problems of many published comparisons, which are also reported separately."""
RECORDED_SEARCHES: Final = "peers"
RECORDED_SCHEDULES: Final = "peers-curves"
_ALWAYS: Final = ("numpy",)


@cache
def suite_problems() -> dict[str, Problem]:
    """Return all problems of the suite by name; cached, always the same objects."""
    return {problem.name: problem for problem in (*synthetic_problems(), *table_problems())}


def chosen_problems(names: Iterable[str] = ()) -> tuple[Problem, ...]:
    """Return benchmark problems by name, kind or the group `classic`; without names all.

    Raises:
        ValueError: a name is unknown.
    """
    every = suite_problems()
    found: dict[str, Problem] = {}
    for name in names:
        by_kind = {key: one for key, one in every.items() if name in one.kinds}
        group = {key: every[key] for key in CLASSIC} if name == "classic" else by_kind
        if name in every:
            group = {name: every[name]}
        if not group:
            raise ValueError(f"problem must be one of classic, {', '.join(every)}; got {name!r}")
        found |= group
    return tuple((found or every).values())


def chosen_searchers(names: Iterable[str] = ()) -> tuple[Searcher, ...]:
    """Return searchers by name (NNI's tuners and peers); without names NNI's built-in ones.

    Args:
        names: names; empty for the built-in tuners without a limit of proposals. A suffix `@10`
            means ten open trials.

    Raises:
        ValueError: a name is unknown.
    """
    known: dict[str, Searcher] = {one.name: one for one in (*tuner_searchers(), *peer_searchers())}
    found = [known.get(name) or _tuner_searcher(name) for name in names]
    return tuple(found or tuner_searchers())


def _tuner_searcher(name: str) -> TunerSearcher:
    tuner, mark, count = name.partition(PARALLEL_MARK)
    find("tuner", tuner)  # raises with the known names
    if not mark:
        return TunerSearcher(tuner)
    if not count.isdecimal() or int(count) < 1:
        raise ValueError(f"after {PARALLEL_MARK} must follow a number >= 1, got {name!r}")
    return TunerSearcher(tuner, concurrency=int(count))


def search_all(
    searchers: Sequence[Searcher],
    problems: Sequence[Problem],
    seeds: Iterable[int],
    trials: int,
    *,
    runs: Runs | None = None,
    limit_s: float | None = None,
    on_run: Callable[[Run, float], None] | None = None,
    processes: int = 1,
) -> Runs:
    """Run the searches that `runs` lacks, of installed searchers, within a time limit; return it.

    Args:
        searchers: searchers; those with missing packages are skipped.
        problems: problems to search.
        seeds: seeds of the searches, >= 0.
        trials: trials of each search.
        runs: existing runs, which are not repeated; new ones are added to them.
        limit_s: wall-clock seconds after which no search starts; None for no limit.
        on_run: callback of each new run and its CPU seconds.
        processes: number of concurrent searches, >= 1; more than one use processes of their own,
            and need problems of the suite.

    Returns:
        `runs` with the new runs.

    Raises:
        ValueError: several processes are requested for a problem outside the suite.

    Examples:
        >>> from nni_benchmark import chosen_problems, chosen_searchers, search_all
        >>> problems = chosen_problems(["branin"])
        >>> runs = search_all(chosen_searchers(["Random"]), problems, range(2), 5)
        >>> len(runs), runs.searchers, runs.problems
        (2, ('Random',), ('branin',))
    """
    check_count("processes", processes, least=1)
    runs = Runs() if runs is None else runs
    present = [one for one in searchers if installed(one)]
    runs.versions |= versions((*_ALWAYS, *(name for one in present for name in one.packages)))
    until_s = math.inf if limit_s is None else time.monotonic() + limit_s
    wanted = _wanted(present, problems, seeds, trials, runs)
    if processes == 1:
        made: Iterable[tuple[Run, float]] = (
            timed_run(searcher, problem, seed, trials)
            for searcher, problem, seed in takewhile(lambda _: time.monotonic() <= until_s, wanted)
        )
    else:
        jobs = _of_suite(wanted)
        made = search_in_processes(jobs, suite_problems, trials, processes, until_s)
    for one, cpu_s in made:
        runs.add(one)
        if on_run:
            on_run(one, cpu_s)
    return runs


def _wanted(
    searchers: Sequence[Searcher],
    problems: Sequence[Problem],
    seeds: Iterable[int],
    trials: int,
    runs: Runs,
) -> Iterator[tuple[Searcher, Problem, int]]:
    for seed in seeds:
        for searcher in searchers:
            for problem in problems:
                known = runs.get(searcher.name, problem.name, seed)
                if (known is None or known.trials < trials) and searcher.takes(problem):
                    yield searcher, problem, seed


def _of_suite(
    wanted: Iterable[tuple[Searcher, Problem, int]],
) -> Iterator[tuple[Searcher, str, int]]:
    for searcher, problem, seed in wanted:
        if suite_problems().get(problem.name) is not problem:
            raise ValueError(
                f"processes must be 1 for problems that are not of the suite, such as "
                f"{problem.name!r}"
            )
        yield searcher, problem.name, seed


def schedule_all(
    schedulers: Sequence[Scheduler], seeds: Iterable[int], *, curves: Sequence[str] = CURVES
) -> Runs:
    """Simulate all installed schedulers on recorded learning curves; return the runs."""
    present = [one for one in schedulers if _has(one)]
    runs = Runs(versions((*_ALWAYS, *(name for one in present for name in one.packages))))
    for seed in seeds:
        for scheduler in present:
            for name in curves:
                runs.add(run_schedule(scheduler, name, seed))
    return runs


def all_schedulers() -> tuple[Scheduler, ...]:
    """Return the schedulers of NNI and the peers'."""
    return (*our_schedulers(), *syne_tune_schedulers())


def _has(scheduler: Scheduler) -> bool:
    return len(versions(scheduler.packages)) == len(scheduler.packages)


def recorded_runs(name: str = RECORDED_SEARCHES) -> Runs:
    """Return the recorded runs of peers, which are part of this package."""
    return Runs.from_json(read_text(path_of(name)))


def with_recorded(runs: Runs, recorded: Runs, seeds: int) -> Runs:
    """Return runs merged with recorded ones of the first ``seeds`` seeds; new win unless shorter.

    Further seeds of the peers are dropped, for a fair comparison; a new run replaces a recorded one
    unless it has fewer trials.
    """
    together = Runs({**recorded.versions, **runs.versions})
    for one in (*(one for one in recorded if one.seed < seeds), *runs):
        together.add(one)
    return together


def irreproducible_runs(
    recorded: Runs,
    searchers: Sequence[Searcher],
    names: Sequence[str],
    seeds: Iterable[int],
    trials: int,
) -> list[str]:
    """Repeat recorded runs of the same versions; return a text for each whose regrets differ.

    Searchers whose packages are not installed in the recorded versions are skipped.

    Args:
        recorded: recorded runs.
        searchers: searchers to repeat.
        names: names of problems.
        seeds: seeds of the runs.
        trials: trials to repeat; at most the recorded number.
    """
    problems, found = suite_problems(), []
    here = versions((*_ALWAYS, *(name for one in searchers for name in one.packages)))
    for searcher in searchers:
        if any(recorded.versions.get(name) != here.get(name, "") for name in searcher.packages):
            continue
        for name in names:
            for seed in seeds:
                old = recorded.get(searcher.name, name, seed)
                if old is None or old.trials < trials:
                    continue
                new = run(searcher, problems[name], seed, trials)
                if new.changes != tuple(pair for pair in old.changes if pair[0] <= trials):
                    found.append(f"{searcher.name} on {name}, seed {seed}")
    return found
