"""Command line of the benchmark: `python -m nni_benchmark COMMAND`."""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nni_benchmark.report import Report, is_peer, report_of, schedule_report
from nni_benchmark.runs import Run, Runs, installed, merged, versions
from nni_benchmark.suite import (
    CELLS,
    RECORDED_SCHEDULES,
    RECORDED_SEARCHES,
    SCHEDULER_CELLS,
    all_schedulers,
    chosen_problems,
    chosen_searchers,
    recorded_runs,
    schedule_all,
    search_all,
    suite_problems,
    with_recorded,
)
from nni_benchmark.tables import CURVES, path_of, read_text, write_text

if TYPE_CHECKING:
    from nni_benchmark.automl.runner import Skipped, TaskResult

_SEEDS: Final = 5
_TRIALS: Final = 100
_EVALUATIONS: Final = 200
_WRITTEN_EVERY_S: Final = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of the benchmark's command line; return 0, or 2 for a wrong argument.

    Args:
        arguments: command-line arguments; None for those of the process.
    """
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = options.command
    try:
        command(options)
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m nni_benchmark", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listed = commands.add_parser("list", help="list searchers, problems and tables")
    listed.set_defaults(command=_list)

    compare = commands.add_parser("compare", help="compare searches on the offline suite")
    compare.add_argument("searchers", nargs="*", help="tuners or peers; default: all tuners")
    _add_size(compare)
    compare.add_argument("--problems", nargs="+", default=[], help="names, kinds, or `classic`")
    compare.add_argument("--trials", type=int, default=_TRIALS)
    compare.add_argument("--cells", type=int, nargs="+", help=f"default: {CELLS}, up to TRIALS")
    compare.add_argument(
        "--judge", nargs="*", default=["auto"], help="searchers whose cells are listed"
    )
    compare.add_argument("--alone", action="store_true", help="leave out the recorded peers")
    compare.add_argument(
        "--limit", type=float, metavar="SECONDS", help="time after which no search starts"
    )
    compare.add_argument("--runs", type=Path, help="file of runs to continue and to write")
    compare.add_argument(
        "--missing", action="store_true", help="run peers only where no recorded run is long enough"
    )
    compare.add_argument("--processes", type=int, default=1, help="number of concurrent searches")
    _add_outputs(compare)
    compare.set_defaults(command=_compare)

    curves = commands.add_parser("curves", help="compare schedulers on recorded learning curves")
    _add_size(curves)
    curves.add_argument("--runs", type=Path, help="file to write the runs of the peers to")
    _add_outputs(curves)
    curves.set_defaults(command=_curves)
    _add_automl(commands)

    _add_nas(commands)

    keep = commands.add_parser("keep", help="add runs of peers to the recorded ones")
    keep.add_argument("files", nargs="+", type=Path, help="files of `compare --runs`")
    keep.add_argument(
        "--into", type=Path, help="target file (.json.gz); default: the installed one"
    )
    keep.set_defaults(command=_keep)

    record = commands.add_parser("record", help="record the tables again")
    record.add_argument("folder", type=Path)
    record.add_argument("names", nargs="*", help="default: all")
    record.set_defaults(command=_record)
    return parser


def _add_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=_SEEDS, help="number of seeds, from 0")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, help="file to write the report to")
    parser.add_argument("--plots", type=Path, help="folder for plots")


def _add_nas(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    nas = commands.add_parser("nas", help="compare strategies of architecture search on a table")
    nas.add_argument("strategies", nargs="*", help="default: all")
    nas.add_argument("--evaluations", type=int, default=_EVALUATIONS, help="models of a search")
    nas.add_argument("--seeds", type=int, default=5)
    nas.set_defaults(command=_nas)


def _add_automl(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    automl = commands.add_parser("automl", help="compare tuners on data sets with a test split")
    automl.add_argument("tuners", nargs="*", help="default: the eight of the published table")
    automl.add_argument("--benchmark", default="nnivalid", help="name or YAML file; or `offline`")
    automl.add_argument("--frameworks", type=Path, help="YAML file of further frameworks")
    automl.add_argument("--architecture", default="random_forest", help="or mlp")
    automl.add_argument("--trials", type=int, default=_TRIALS)
    automl.add_argument("--time-limit", type=float, default=math.inf, help="seconds a search")
    automl.add_argument("--trees", type=int, help="largest number of trees, for a short search")
    automl.add_argument("--folds", type=int, help="number of folds; default: those of the tasks")
    automl.add_argument("--output", type=Path, help="default: results_<time>")
    automl.set_defaults(command=_automl)


def _print(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()


def _nas(options: argparse.Namespace) -> None:
    # It imports torch, which the other commands do without.
    from nni_benchmark.nas.comparison import STRATEGIES, check_strategies, report

    names = options.strategies or list(STRATEGIES)
    check_strategies(names)
    _print(report(names, options.evaluations, options.seeds))


def _list(_: argparse.Namespace) -> None:
    from nni_benchmark.automl.tasks import BENCHMARKS
    from nni_benchmark.peers import peer_searchers

    _print("searchers")
    for searcher in (*chosen_searchers(), *peer_searchers()):
        missing = "" if installed(searcher) else f"  (needs {', '.join(searcher.packages)})"
        _print(f"  {searcher.name}{missing}")
    _print("problems")
    for problem in suite_problems().values():
        _print(f"  {problem.name:24} {', '.join(sorted(problem.kinds))}")
    _print("learning curves\n  " + "\n  ".join(CURVES))
    _print("benchmarks on data sets")
    for name, tasks in BENCHMARKS.items():
        _print(f"  {name:24} {', '.join(task.name for task in tasks)}")


def _compare(options: argparse.Namespace) -> None:
    problems = chosen_problems(options.problems)
    searchers, runs = chosen_searchers(options.searchers), Runs()
    if options.runs and options.runs.exists():
        runs = Runs.from_json(options.runs.read_text("utf-8"))
    if options.missing:
        # Runs of other versions are refused: they could not be repeated together.
        here = versions(name for one in searchers for name in one.packages)
        runs = merged([recorded_runs(), runs, Runs(here)])
    kept = _RunsFile(runs, options.runs)
    try:
        search_all(
            searchers,
            problems,
            range(options.seeds),
            options.trials,
            runs=runs,
            limit_s=options.limit,
            on_run=kept.report,
            processes=options.processes,
        )
    finally:
        kept.write()
    together = runs if options.alone else with_recorded(runs, recorded_runs(), options.seeds)
    cells = options.cells or [cell for cell in CELLS if cell <= options.trials] or [options.trials]
    _publish(report_of(together, problems, cells, judge=options.judge), together, options)


@dataclass(slots=True)
class _RunsFile:
    """Collection of runs saved to a file every few seconds, so that a stop loses little."""

    runs: Runs
    path: Path | None
    _written_s: float = field(default_factory=time.monotonic)

    def report(self, run: Run, cpu_s: float) -> None:
        """Print a finished search's regret and CPU time; save the runs if that is due."""
        sys.stderr.write(
            f"{run.searcher} on {run.problem}, seed {run.seed}: {run.regret(run.trials):.3g} "
            f"({cpu_s:.1f} s CPU)\n"
        )
        if time.monotonic() - self._written_s > _WRITTEN_EVERY_S:
            self.write()

    def write(self) -> None:
        """Write all runs as JSON to the file, atomically; do nothing without a file."""
        if self.path:
            new = self.path.with_name(f"{self.path.name}.new")
            new.write_text(self.runs.to_json(), "utf-8")
            new.replace(self.path)
        self._written_s = time.monotonic()


def _curves(options: argparse.Namespace) -> None:
    runs = schedule_all(all_schedulers(), range(options.seeds))
    if options.runs:
        kept = Runs(runs.versions)
        for run in runs:
            if is_peer(run.searcher):
                kept.add(run)
        options.runs.write_text(kept.to_json(), "utf-8")
    together = with_recorded(runs, recorded_runs(RECORDED_SCHEDULES), options.seeds)
    _publish(schedule_report(together, CURVES, SCHEDULER_CELLS), together, options)


def _publish(report: Report, runs: Runs, options: argparse.Namespace) -> None:
    _print(report.to_text())
    if options.json:
        options.json.write_text(report.to_json(), "utf-8")
    if options.plots:
        from nni_benchmark.plots import save_ranks, save_regrets

        options.plots.mkdir(parents=True, exist_ok=True)
        for problem in report.regrets:
            save_regrets(runs, problem, options.plots / f"regret-{problem}.png")
        for table in report.ranks:
            save_ranks(table, options.plots / f"rank-{table.group}-{table.after}.png")


def _automl(options: argparse.Namespace) -> None:
    from dataclasses import replace

    from nni_benchmark.automl import frameworks, results, runner, tasks

    known = {}
    if options.frameworks:
        known = frameworks.read_frameworks(options.frameworks, time_limit_s=options.time_limit)
    default = runner.Framework("Random", options.architecture, options.trials, options.time_limit)
    chosen = frameworks.frameworks_of(options.tuners, known, default)
    if options.trees:
        chosen = [runner.smaller(one, options.trees) for one in chosen]
    wanted = tasks.benchmark(options.benchmark)
    if options.folds:
        wanted = tuple(replace(task, folds=options.folds) for task in wanted)
    found = runner.run_benchmark(chosen, wanted, on_result=_report_task)
    now = datetime.datetime.now(datetime.UTC)
    folder = options.output or Path(f"results_{now:%Y%m%dT%H%M%S}")
    reports = results.write_reports(found, folder)
    _print((reports / "performances.txt").read_text("utf-8"))
    _print((reports / "rankings.txt").read_text("utf-8"))
    _print(f"reports are in {reports}")


def _report_task(one: TaskResult | Skipped) -> None:
    from nni_benchmark.automl.runner import TaskResult

    if isinstance(one, TaskResult):
        sys.stderr.write(f"{one.tuner} on {one.task.name}, fold {one.fold}: {one.test_score:.4f}\n")
    else:
        sys.stderr.write(f"{one.task}: {one.reason}\n")


def _keep(options: argparse.Namespace) -> None:
    path = options.into or path_of(RECORDED_SEARCHES)
    known = [Runs.from_json(read_text(path))] if path.exists() else []
    new = [Runs.from_json(file.read_text("utf-8")) for file in options.files]
    together = merged([*known, *new], is_peer)
    write_text(path, together.to_json())
    _print(f"{path} holds {len(together)} runs of {', '.join(together.searchers)}")


def _record(options: argparse.Namespace) -> None:
    from nni_benchmark.recording import record, recorded_names

    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or recorded_names():
        _print(str(record(name, options.folder)))
