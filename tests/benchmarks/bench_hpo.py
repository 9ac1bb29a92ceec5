"""What hyperparameter tuning must reach, figure by figure, beside other libraries.

Speed of an ask and of recovery; `auto`, TPE and GPTuner on problems of the suite beside peers whose
runs were recorded, a seeded part of which is repeated to see that it comes out the same; ten trials
in parallel; schedulers on recorded learning curves; conformance. The table of all figures stands at
the end.

As it is it takes about ten minutes on two quiet cores: six seeds, 100 trials, twelve problems.
`--full` is what the targets mean: 20 seeds, 200 trials, every problem and tuner, 500 trials of
conformance, and the ranks of a published table (hours). `--parts`, `--seeds`, `--trials`,
`--tuners`, `--problems`, `--limit` change the size; `--runs FILE` keeps our searches, so that the
next call goes on.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from threadpoolctl import threadpool_limits

from nni_benchmark import (
    Run,
    Runs,
    all_schedulers,
    chosen_problems,
    chosen_searchers,
    recorded_runs,
    report_of,
    schedule_all,
    schedule_report,
    search_all,
)
from nni_benchmark.suite import (
    CELLS,
    CLASSIC,
    RECORDED_SCHEDULES,
    SCHEDULER_CELLS,
    irreproducible_runs,
    suite_problems,
    with_recorded,
)
from nni_benchmark.tables import CURVES
from tests.benchmarks.figures import Figure, print_figures
from tests.benchmarks.hpo_published import published_figures
from tests.benchmarks.hpo_quality import (
    AFTER_PARALLEL,
    IN_PARALLEL,
    cell_figures,
    measured_cells,
    pair,
    parallel_figures,
    print_cells,
    tpe_pair,
)
from tests.benchmarks.hpo_speed import speed_figures
from tests.benchmarks.measure import print_header

TUNERS: Final = ("auto", "TPE", "GPTuner", "Random")
ALL_TUNERS: Final = (*TUNERS, "SMAC", "CmaEs", "Anneal", "Evolution", "NSGA2")
PROBLEMS: Final = (
    *CLASSIC,
    *("mixed10", "nested", "branin+noise", "budget", "thin", "zdt1", "machine"),
)
REPEATED: Final = (
    *("optuna-tpe", "optuna-tpe-univariate", "optuna-tpe-group", "optuna-cma", "optuna-nsga2"),
    "hyperopt-tpe",
)
SEEDS, TRIALS = 6, 100
FULL_SEEDS, FULL_TRIALS = 20, 200
CONFORMANCE_TRIALS: Final = 500
DUELS_OF_CURVES: Final = (
    ("ASHA", "syne-asha"),
    ("ASHA-stopping", "syne-asha"),
    ("BOHB", "syne-bohb"),
)
PUBLISHED_TRIALS, PUBLISHED_TREES, PUBLISHED_FOLDS = 60, 64, 6
CONFORMANCE: Final = "tests/conformance/hpo/test_claimed_types.py"


def repetition(recorded: Runs) -> Iterator[Figure]:
    """Repeat part of the peers' runs."""
    searchers = chosen_searchers(REPEATED)
    wrong = irreproducible_runs(recorded, searchers, ["branin", "nested", "zdt1"], [0, 1], 50)
    note = "seeds 0 and 1, 50 trials" + "".join(f"; {name}" for name in wrong)
    yield Figure("peers' runs that differ when repeated", str(len(wrong)), "0", not wrong, note)


def quality(options: argparse.Namespace) -> Iterator[Figure]:
    """Search the suite with our tuners and set them beside the recorded peers."""
    recorded = recorded_runs()
    yield from repetition(recorded)
    problems = chosen_problems(options.problems)
    names = [problem.name for problem in problems]
    ours = _searched(options)
    together = with_recorded(ours, recorded, options.seeds)
    cells = [cell for cell in CELLS if cell <= options.trials] or [options.trials]
    judge = [name for name in ("auto", "TPE") if name in options.tuners]
    report = report_of(together, problems, cells, judge=judge)
    print(report.to_text())
    for name in judge[:1]:
        yield from cell_figures([one for one in report.cells if one.searcher == name], "suite")
        measured = measured_cells(together, name, options.trials)
        print("\nRegret of auto beside the measured table of peers (medians; 15 to 20 seeds)")
        print_cells(measured)
        yield from cell_figures(measured, "measured table")
    for name in ("TPE", "auto"):
        yield from parallel_figures(together, name)
    yield from tpe_pair(together, names, cells)
    yield from pair(together, "GPTuner", "optuna-gp", names, cells)


def _searched(options: argparse.Namespace) -> Runs:
    """Run our tuners, first one trial after another, then ten at a time."""
    runs, path = Runs(), options.runs
    if path and path.exists():
        runs = Runs.from_json(path.read_text("utf-8"))

    def report_run(run: Run, cpu_s: float) -> None:
        sys.stderr.write(f"{run.searcher} on {run.problem}, seed {run.seed}: {cpu_s:.1f} s CPU\n")
        if path:
            path.write_text(runs.to_json(), "utf-8")

    began_s = time.monotonic()
    several = [f"{name}@{IN_PARALLEL}" for name in options.tuners if name in {"auto", "TPE"}]
    jobs = (
        (options.tuners, options.problems, options.trials),
        (several, [name for name in CLASSIC if name in options.problems], AFTER_PARALLEL),
    )
    for tuners, problems, trials in jobs:
        left_s = options.limit and max(0.0, options.limit - (time.monotonic() - began_s))
        if not tuners or not problems:
            continue
        search_all(
            chosen_searchers(tuners),
            chosen_problems(problems),
            range(options.seeds),
            trials,
            runs=runs,
            limit_s=left_s,
            on_run=report_run,
            processes=options.processes,
        )
    return runs


def schedulers(options: argparse.Namespace) -> Iterator[Figure]:
    """Compare schedulers, the peers' as they were recorded."""
    runs = schedule_all(all_schedulers(), range(options.seeds))
    together = with_recorded(runs, recorded_runs(RECORDED_SCHEDULES), options.seeds)
    print(schedule_report(together, CURVES, SCHEDULER_CELLS).to_text())
    for name, peer in DUELS_OF_CURVES:
        yield from pair(together, name, peer, CURVES, SCHEDULER_CELLS)


def conformance(options: argparse.Namespace) -> Iterator[Figure]:
    """Put every built-in through many trials of each type of search space that it claims."""
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", CONFORMANCE]
    environment = dict(os.environ)
    if options.full:
        environment["NNI_CONFORMANCE_TRIALS"] = str(CONFORMANCE_TRIALS)
    else:
        line += ["-m", "not slow"]
    root = Path(__file__).parents[2]
    done = subprocess.run(line, cwd=root, env=environment, capture_output=True, text=True)  # noqa: PLW1510 - its code is the figure
    last = (done.stdout.strip() or "no output").splitlines()[-1].strip("= ")
    failed = re.search(r"(\d+) failed", last)
    size = CONFORMANCE_TRIALS if options.full else f"{CONFORMANCE_TRIALS}, without the slow ones"
    found = f"{failed[1]} failed" if failed else f"code {done.returncode}"
    green = done.returncode == 0
    yield Figure(f"conformance, {size}", "green" if green else found, "green", green, last)


def speed(_: argparse.Namespace) -> Iterator[Figure]:
    """Measure asks and recovery."""
    yield from speed_figures()


def published(_: argparse.Namespace) -> Iterator[Figure]:
    """Rank the tuners of a published table."""
    yield from published_figures(PUBLISHED_TRIALS, PUBLISHED_TREES, PUBLISHED_FOLDS)


PARTS: Final[dict[str, Callable[[argparse.Namespace], Iterator[Figure]]]] = {
    "speed": speed,
    "quality": quality,
    "schedulers": schedulers,
    "conformance": conformance,
    "published": published,
}


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser("./dev bench hpo", description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=PARTS)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--tuners", nargs="+")
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--limit", type=float, help="seconds after which no search is started")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", type=Path, help="file of our searches, to go on with")
    options = parser.parse_args(arguments)
    full = options.full
    options.parts = options.parts or [name for name in PARTS if full or name != "published"]
    options.seeds = options.seeds or (FULL_SEEDS if full else SEEDS)
    options.trials = options.trials or (FULL_TRIALS if full else TRIALS)
    options.tuners = options.tuners or list(ALL_TUNERS if full else TUNERS)
    chosen = options.problems or (list(suite_problems()) if full else PROBLEMS)
    options.problems = [problem.name for problem in chosen_problems(chosen)]
    return options


def main() -> int:
    options = options_of()
    print_header(str(__doc__), seed=0, packages=["numpy", "optuna", "hyperopt", "cmaes"])
    figures: list[Figure] = []
    for name in options.parts:
        print(f"\n-- {name}")
        began_s = time.monotonic()
        with threadpool_limits(1):
            found = list(PARTS[name](options))
        print_figures(found)
        print(f"   {time.monotonic() - began_s:.0f} s")
        figures += found
    print("\n-- all")
    print_figures(figures)
    return 0 if all(one.met for one in figures if one.what.startswith("peers' runs")) else 1


if __name__ == "__main__":
    sys.exit(main())
