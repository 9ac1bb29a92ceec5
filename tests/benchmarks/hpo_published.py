"""Mean ranks of the eight tuners of a published table, on data that need no network.

The table ranks them with random forests on 24 tasks, about two days for each tuner. Of it is taken
what a smaller field of tasks can confirm: on AUC six of them rank before random search, and on the
other metrics none trails it by more than there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from nni_benchmark.automl.frameworks import TUNERS
from nni_benchmark.automl.results import mean_ranks, results_only
from nni_benchmark.automl.runner import Framework, run_benchmark, smaller
from nni_benchmark.automl.tasks import benchmark
from tests.benchmarks.figures import Figure

BEFORE_RANDOM: Final = ("SMAC", "GPTuner", "Evolution", "Anneal", "MetisTuner", "TPE")
TRAILING: Final[Mapping[str, Mapping[str, float]]] = {
    "rmse": {
        "TPE": 0.94, "GPTuner": 0.94, "MetisTuner": 0.94, "SMAC": 0.56, "Evolution": 0.44,
        "DNGOTuner": 0.44,
    },
    "logloss": {
        "MetisTuner": 2.57, "Evolution": 1.64, "Anneal": 1.57, "TPE": 1.35, "GPTuner": 1.28,
        "SMAC": 0.57, "DNGOTuner": 0.14,
    },
}  # fmt: skip
"""By how much tuners rank behind random search in the table."""


def published_figures(trials: int, trees: int, folds: int) -> Iterator[Figure]:
    """Yield the figures.

    Args:
        trials: of each search.
        trees: largest forest.
        folds: splits of each data set, each searched anew.
    """
    frameworks = [smaller(Framework(tuner, trials=trials), trees) for tuner in TUNERS]
    tasks = [replace(task, folds=folds) for task in benchmark("offline")]
    ranks = mean_ranks(results_only(run_benchmark(frameworks, tasks)))
    note = f"{trials} trials, up to {trees} trees, {folds} splits"
    for tuner in BEFORE_RANDOM:
        yield _compared(ranks["auc"], tuner, "auc", 0.0, note)
    for metric, trailing in TRAILING.items():
        for tuner in TUNERS:
            if tuner != "Random":
                yield _compared(ranks[metric], tuner, metric, trailing.get(tuner, 0.0), note)


def _compared(
    ranks: Mapping[str, float], tuner: str, metric: str, behind: float, note: str
) -> Figure:
    found, limit = ranks[tuner], ranks["Random"] + behind
    met = found <= limit if behind else found < limit
    sign = "<=" if behind else "<"
    what = f"mean rank of 8, {metric}, {tuner}"
    return Figure(what, f"{found:.3g}", f"{sign} {limit:.3g}", met, note)
