"""The offline suite: every problem, and running searches over them."""

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
from nni_benchmark.processes import searched_in_processes, timed_run
from nni_benchmark.runs import Run, Runs, installed, run, versions
from nni_benchmark.schedulers import Scheduler, our_schedulers, run_schedule
from nni_benchmark.searcher import PARALLEL_MARK, Searcher, TunerSearcher, tuner_searchers
from nni_benchmark.synthetic import synthetic_problems
from nni_benchmark.tables import CURVES, path_of, read_text, table_problems

CELLS: Final = (50, 100, 200)
"""Numbers of trials after which regrets are compared."""
SCHEDULER_CELLS: Final = (5, 10, 25, 50, 100)
"""Hundredths of the time after which schedulers are compared."""
CLASSIC: Final = ("branin", "hartmann6", "ackley10", "rosenbrock5", "digits")
"""Problems that comparisons of libraries have in common; reported apart as well."""
RECORDED_SEARCHES: Final = "peers"
RECORDED_SCHEDULES: Final = "peers-curves"
_ALWAYS: Final = ("numpy",)


@cache
def suite_problems() -> dict[str, Problem]:
    """Return all problems by name."""
    return {problem.name: problem for problem in (*synthetic_problems(), *table_problems())}


def chosen_problems(names: Iterable[str] = ()) -> tuple[Problem, ...]:
    """Return problems by name, by kind, or as the group `classic`; all if none is named.

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
    """Return searchers by name: built-in and registered tuners, and peers.

    Args:
        names: none for the built-in tuners that search any amount of points. After the name of a
            tuner `@10` may follow: it has ten trials open at a time.

    Raises:
        ValueError: a name is unknown.
    """
    known: dict[str, Searcher] = {one.name: one for one in (*tuner_searchers(), *peer_searchers())}
    found = [known.get(name) or _tuner_searcher(name) for name in names]
    return tuple(found or tuner_searchers())


def _tuner_searcher(name: str) -> TunerSearcher:
    tuner, mark, count = name.partition(PARALLEL_MARK)
    find("tuner", tuner)  # says which there are
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
    told: Callable[[Run, float], None] | None = None,
    processes: int = 1,
) -> Runs:
    """Run every searcher on every problem that it takes, all of them for one seed after another.

    Args:
        searchers: those whose packages are missing are passed over.
        problems: what to search.
        seeds: of the searches, >= 0.
        trials: of each search.
        runs: what is known already; these are not run again. New ones are added to it.
        limit_s: wall-clock seconds after which no further search is started; None: no limit.
        told: called with each new run and the CPU seconds that it took.
        processes: how many searches run at a time, >= 1; with more than one each has a process of
            its own, and the problems must be those of the suite.

    Raises:
        ValueError: several processes are to search a problem that is not of the suite.
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
        made = searched_in_processes(jobs, suite_problems, trials, processes, until_s)
    for one, cpu_s in made:
        runs.add(one)
        if told:
            told(one, cpu_s)
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
    """Run every scheduler whose packages are installed on recorded learning curves."""
    present = [one for one in schedulers if _has(one)]
    runs = Runs(versions((*_ALWAYS, *(name for one in present for name in one.packages))))
    for seed in seeds:
        for scheduler in present:
            for name in curves:
                runs.add(run_schedule(scheduler, name, seed))
    return runs


def all_schedulers() -> tuple[Scheduler, ...]:
    """Return ours and the peers'."""
    return (*our_schedulers(), *syne_tune_schedulers())


def _has(scheduler: Scheduler) -> bool:
    return len(versions(scheduler.packages)) == len(scheduler.packages)


def recorded_runs(name: str = RECORDED_SEARCHES) -> Runs:
    """Return the peers' runs that came with NNI."""
    return Runs.from_json(read_text(path_of(name)))


def beside(runs: Runs, recorded: Runs, seeds: int) -> Runs:
    """Return runs together with the recorded ones of the first seeds.

    More seeds of the peers than of our own would compare different things; of a run that is in
    both the new one counts.
    """
    together = Runs({**recorded.versions, **runs.versions})
    for one in (*(one for one in recorded if one.seed < seeds), *runs):
        together.add(one)
    return together


def differing(
    recorded: Runs,
    searchers: Sequence[Searcher],
    names: Sequence[str],
    seeds: Iterable[int],
    trials: int,
) -> list[str]:
    """Repeat some recorded runs and return those that came out differently, in words.

    Only searchers count whose packages are installed in the recorded versions: others may differ.

    Args:
        recorded: what is checked.
        searchers: whose runs.
        names: of problems.
        seeds: of the runs.
        trials: that are repeated; at most as many as were recorded.
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
