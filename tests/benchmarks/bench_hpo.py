"""How do the tuners of NNI rank among those of other libraries, on the problems of the suite?

Ours are run here; peers' runs were recorded, and a seeded part of them is repeated to see that they
come out the same. Then the medians of `auto` beside those that were measured on the five classic
problems, and schedulers on recorded learning curves. `--seeds N --trials N --tuners ... --problems
...` change the size; targets: `auto` loses at most 20 % of its cells, wins 30 %, and has nowhere
more than twice the regret of the best peer.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

from nni.hpo.benchmark import (
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
from nni.hpo.benchmark.suite import (
    CELLS,
    CLASSIC,
    RECORDED_SCHEDULES,
    SCHEDULER_CELLS,
    beside,
    differing,
)
from nni.hpo.benchmark.tables import CURVES
from nni.hpo.benchmark.verdicts import median_regrets
from tests.benchmarks.measure import print_header

TUNERS = ("auto", "TPE", "GPTuner", "SMAC", "CmaEs", "Anneal", "Evolution", "NSGA2", "Random")
PROBLEMS = (
    *CLASSIC,
    *("mixed10", "nested", "branin+noise", "budget", "thin", "zdt1", "machine"),
)
REPEATED = ("optuna-tpe", "optuna-cma", "hyperopt-tpe", "optuna-nsga2")
MEASURED = Path(__file__).parents[1] / "assets" / "peers" / "quality.json"


def print_repetition(recorded: Runs) -> int:
    """Repeat part of the peers' runs; return how many came out differently."""
    searchers = chosen_searchers(REPEATED)
    wrong = differing(recorded, searchers, ["branin", "nested", "zdt1"], [0, 1], 50)
    print(f"   peers' runs repeated, seeds 0 and 1, 50 trials: {len(wrong)} differ {wrong or ''}")
    return len(wrong)


def print_measured(runs: Runs, tuner: str, trials: int) -> None:
    """Print medians beside those of the peers' larger measurement."""
    measured = json.loads(MEASURED.read_text())["regrets"]
    print(f"\nMedian regret of {tuner} beside the best measured peer (15 to 20 seeds)")
    for problem in CLASSIC:
        # A peer that was stopped earlier counts later as it stood: the bar never loosens.
        best = ("", float("inf"))
        for after in CELLS:
            for name, regret in measured[problem][str(after)].items():
                if regret <= best[1]:
                    best = (name, regret)
            if after > trials:
                continue
            own = median_regrets(runs, problem, after).get(tuner)
            if own is not None:
                print(f"   {problem:12} @{after:<4} {own:10.3g}   {best[1]:10.3g}  {best[0]}")


def print_schedulers(seeds: int) -> None:
    """Compare schedulers, the peers' as they were recorded."""
    ours = schedule_all(all_schedulers(), range(seeds))
    runs = beside(ours, recorded_runs(RECORDED_SCHEDULES), seeds)
    print(schedule_report(runs, CURVES, SCHEDULER_CELLS).to_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--tuners", nargs="+", default=list(TUNERS))
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--limit", type=float, default=None, help="seconds for our searches")
    options = parser.parse_args()
    print_header(str(__doc__), seed=0, packages=["numpy", "optuna", "hyperopt", "cmaes"])
    recorded = recorded_runs()
    problems = chosen_problems(options.problems)
    cells = [cell for cell in CELLS if cell <= options.trials]
    with threadpool_limits(1):
        wrong = print_repetition(recorded)
        ours = search_all(
            chosen_searchers(options.tuners), problems, range(options.seeds), options.trials,
            limit_s=options.limit,
        )  # fmt: skip
    together = beside(ours, recorded, options.seeds)
    judge = [name for name in ("auto", "TPE") if name in options.tuners]
    report = report_of(together, problems, cells, judge=judge)
    print(report.to_text())
    for name in judge:
        print_measured(together, name, options.trials)
    ratios = [cell.ratio for cell in report.cells if cell.searcher == "auto"]
    if ratios:
        print(f"\n   median ratio of auto to the best peer: {statistics.median(ratios):.2f}")
    print_schedulers(options.seeds)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
