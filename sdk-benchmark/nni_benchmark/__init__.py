"""Benchmarks of hyperparameter optimisation: tuners of NNI and other libraries, on equal terms.

All searchers get the same problems, seeds and numbers of trials.

`python -m nni_benchmark --help`; or from Python:

    from nni_benchmark import chosen_problems, chosen_searchers, report_of, search_all

    problems = chosen_problems(["continuous"])
    runs = search_all(chosen_searchers(["TPE", "Random"]), problems, range(5), 50)
    print(report_of(runs, problems, [25, 50]).to_text())

`python -m nni.hpo.benchmark` and `nni.hpo.benchmark` are other spellings of this package.
"""

from __future__ import annotations

from nni_benchmark.problem import Evaluation, Outcome, Problem
from nni_benchmark.report import Report, report_of, schedule_report
from nni_benchmark.runs import Run, Runs
from nni_benchmark.searcher import Searcher, TunerSearcher
from nni_benchmark.suite import (
    all_schedulers,
    chosen_problems,
    chosen_searchers,
    recorded_runs,
    schedule_all,
    search_all,
    suite_problems,
)

__all__ = [
    "Evaluation",
    "Outcome",
    "Problem",
    "Report",
    "Run",
    "Runs",
    "Searcher",
    "TunerSearcher",
    "all_schedulers",
    "chosen_problems",
    "chosen_searchers",
    "recorded_runs",
    "report_of",
    "schedule_all",
    "schedule_report",
    "search_all",
    "suite_problems",
]
