"""Adapter of Syne Tune: searchers on problems, and schedulers on recorded learning curves.

Syne Tune's own simulator wants its own tables, so that its schedulers are driven here: started
trials report after each step, in the order of virtual time, until the scheduler says stop.
"""

from __future__ import annotations

import datetime
import heapq
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from nni.hpo.json_value import JsonValue
from nni.hpo.simulation.curve_table import CurveTable
from nni_benchmark.problem import Evaluation, Problem
from nni_benchmark.schedulers import WORKERS, Report
from nni_benchmark.searcher import single_objective

_METRIC: Final = "metric"
_STEP: Final = "step"
_TYPES: Final = frozenset({"choice", "randint", "uniform", "loguniform"})
_START: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class SyneTuneSearcher:
    """Searcher by Syne Tune's `kde` (its TPE) or `bore`, which trains each trial fully."""

    searcher: Literal["kde", "bore"]

    @property
    def name(self) -> str:
        """Name in reports; `library-sampler` for peers."""
        return f"syne-{self.searcher}"

    @property
    def packages(self) -> tuple[str, ...]:
        """Required packages besides NNI and numpy."""
        return ("syne-tune", "xgboost") if self.searcher == "bore" else ("syne-tune",)

    def takes(self, problem: Problem) -> bool:
        """Return whether a problem is flat, without limits, of one objective and plain types."""
        plain = single_objective(problem) and problem.flat
        if not plain or problem.kinds & {"constrained", "limited"}:
            return False
        return all(entry["_type"] in _TYPES for entry in problem.space.values())

    def search(self, evaluation: Evaluation) -> None:
        """Run Syne Tune by ask and tell until no trial is left; the evaluation keeps regrets."""
        from syne_tune.optimizer import baselines
        from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler

        _quiet()
        np.random.seed(evaluation.seed)  # noqa: NPY002 - Syne Tune uses the global generator
        scheduler = {"kde": baselines.TPE, "bore": baselines.BORE}[self.searcher](
            _space(evaluation.problem.space),
            metric=_METRIC,
            do_minimize=True,
            random_seed=evaluation.seed,
        )
        asked = AskTellScheduler(scheduler)
        while evaluation.left:
            trial = asked.ask()
            outcome = evaluation(_plain(trial.config))
            assert outcome.losses is not None  # spaces with constraints are unsupported
            asked.tell(trial, {_METRIC: outcome.losses[0]})


@dataclass(frozen=True, slots=True)
class SyneTuneScheduler:
    """Syne Tune's ASHA or BOHB; `reports` simulates it on learning curves for a virtual time."""

    scheduler: Literal["asha", "bohb"]
    packages: tuple[str, ...] = ("syne-tune",)

    @property
    def name(self) -> str:
        """Name in reports."""
        return f"syne-{self.scheduler}"

    def reports(self, table: CurveTable, seed: int, duration_s: float) -> list[Report]:
        """Simulate Syne Tune's scheduler on learning curves; return (virtual time, value) pairs."""
        from syne_tune.optimizer import baselines

        _quiet()
        np.random.seed(seed)  # noqa: NPY002 - brackets use the global generator
        scheduler = {"asha": baselines.ASHA, "bohb": baselines.BOHB}[self.scheduler](
            _space(table.search_space),
            metric=_METRIC,
            time_attr=_STEP,
            max_t=table.steps,
            do_minimize=table.optimize_mode == "minimize",
            random_seed=seed,
        )
        return _driven(scheduler, table, duration_s)


def _driven(scheduler: Any, table: CurveTable, duration_s: float) -> list[Report]:  # noqa: ANN401 - ships no types
    from syne_tune.backend.trial_status import Trial

    # (time of the next report, id, step): ties are ordered by id, as of the start.
    due: list[tuple[float, int, int]] = []
    trials: dict[int, Any] = {}
    reports: list[Report] = []

    def start(now_s: float) -> None:
        suggestion = scheduler.suggest()
        trial = Trial(len(trials), suggestion.config, _START)
        trials[trial.trial_id] = trial
        scheduler.on_trial_add(trial)
        curve = table.curve(_plain(trial.config))
        heapq.heappush(due, (now_s + curve.step_s, trial.trial_id, 1))

    for _ in range(WORKERS):
        start(0.0)
    while due[0][0] <= duration_s:
        now_s, trial_id, step = heapq.heappop(due)
        trial = trials[trial_id]
        curve = table.curve(_plain(trial.config))
        value = curve.values[step - 1]
        reports.append((now_s, value))
        result = {_METRIC: value, _STEP: step}
        if step == table.steps:
            scheduler.on_trial_complete(trial, result)
            start(now_s)
        elif scheduler.on_trial_result(trial, result) == "STOP":
            scheduler.on_trial_remove(trial)
            start(now_s)
        else:
            heapq.heappush(due, (now_s + curve.step_s, trial_id, step + 1))
    return reports


def _quiet() -> None:
    logging.getLogger("syne_tune").setLevel(logging.ERROR)


def _space(space: Mapping[str, JsonValue]) -> dict[str, Any]:
    from syne_tune import config_space

    made: dict[str, Any] = {}
    for name, entry in space.items():
        kind, values = entry["_type"], entry["_value"]
        if kind == "choice":
            made[name] = config_space.choice(list(values))
        elif kind == "randint":
            made[name] = config_space.randint(values[0], values[1] - 1)
        else:
            made[name] = getattr(config_space, kind)(*values)
    return made


def _plain(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a configuration with numpy numbers as plain Python numbers."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in configuration.items()
    }


def syne_tune_schedulers() -> tuple[SyneTuneScheduler, ...]:
    """Return the schedulers of Syne Tune that are compared."""
    return (SyneTuneScheduler("asha"), SyneTuneScheduler("bohb"))
