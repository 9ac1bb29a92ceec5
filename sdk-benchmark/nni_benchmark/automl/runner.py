"""Runs of tuners and advisors on the tasks of a benchmark."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from nni.errors import NoMoreTrialError
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.factory import algorithms, find, validate
from nni.hpo.registry.validation import check_count
from nni.hpo.search.optimization import optimize
from nni.hpo.search.study import Study
from nni.hpo.simulation.table_training import BUDGET_KEY
from nni_benchmark.automl.architectures import (
    ARCHITECTURES,
    LEAST_TREES,
    MOST_TREES,
    Architecture,
)
from nni_benchmark.automl.data_sets import Data, DataUnavailableError, load
from nni_benchmark.automl.tasks import GREATER_IS_BETTER, Metric, Task

_LEAST_CHANCE: Final = 1e-12
_CROSS_FOLDS: Final = 3
_LARGEST_BUDGET: Final = 27
_BUDGETS: Final[Mapping[str, dict[str, JsonValue]]] = {
    "Hyperband": {"R": _LARGEST_BUDGET, "eta": 3},
    "BOHB": {"min_budget": 1, "max_budget": _LARGEST_BUDGET, "eta": 3},
    "ASHA": {"min_budget": 1, "max_budget": _LARGEST_BUDGET, "eta": 3},
}
"""Arguments of advisors. The budget of a trial, relative to the largest one, is the fidelity of its
training; other advisors get full training."""


@dataclass(frozen=True, slots=True)
class Framework:
    """Entry of a benchmark: tuner or advisor, model family, limits, seed, own space; validated."""

    tuner: str
    """Built-in or registered name of a tuner or an advisor."""
    architecture: str = "random_forest"
    trials: int = 100
    """Largest number of trials of a search."""
    time_limit_s: float = math.inf
    """Time limit of a search, after which no trial starts."""
    seed: int = 0
    space: dict[str, JsonValue] | None = None
    """Search space; None for the architecture's."""
    name: str = ""
    """Name in reports; empty for the tuner's."""

    def __post_init__(self) -> None:
        if self.kind == "tuner":
            find("tuner", self.tuner)
        check_count("trials", self.trials, least=1)
        if self.architecture not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise ValueError(f"architecture must be one of {known}, got {self.architecture!r}")
        if not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s must be > 0, got {self.time_limit_s}")
        if not self.name:
            object.__setattr__(self, "name", self.tuner)

    @property
    def kind(self) -> Literal["tuner", "advisor"]:
        """Kind of the algorithm; `tuner` if the name is unknown."""
        return "advisor" if self.tuner in {one.name for one in algorithms("advisor")} else "tuner"

    def search_space(self) -> dict[str, JsonValue]:
        """Return the own or model family's space, its numeric form if needed; raise if none fits.

        Raises:
            ValueError: it takes none.
        """
        if self.space is not None:
            return self.space
        architecture = ARCHITECTURES[self.architecture]
        try:
            validate(self.kind, self.tuner, {}, architecture.space)
        except ValueError:
            validate(self.kind, self.tuner, {}, architecture.numeric_space)
            return architecture.numeric_space
        return architecture.space


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Scores of all trials of one search on a fold, and the test score of its best model."""

    tuner: str
    """Name of the framework."""
    task: Task
    fold: int
    scores: tuple[float, ...]
    """Cross-validation score of each trial."""
    test_score: float
    """Test score of the incumbent, trained on the whole train split."""
    parameters: JsonValue
    """Hyperparameters of the incumbent."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Task of a benchmark that was left out because its data are missing."""

    task: str
    reason: str


def run_benchmark(
    frameworks: Sequence[Framework],
    tasks: Sequence[Task],
    *,
    on_result: Callable[[TaskResult | Skipped], None] | None = None,
    load_data: Callable[[Task, int], Data] = load,
) -> list[TaskResult | Skipped]:
    """Tune by each framework on each fold; return results, with `Skipped` for tasks without data.

    A task without the data of a fold is skipped as a whole; errors of a search propagate.

    Args:
        frameworks: one per tuner.
        tasks: of the benchmark.
        on_result: callback of each result.
        load_data: gives the data of a fold of a task, see `data_sets.load`.
    """
    found: list[TaskResult | Skipped] = []
    for result in _results(frameworks, tasks, load_data):
        found.append(result)
        if on_result:
            on_result(result)
    return found


def _results(
    frameworks: Sequence[Framework],
    tasks: Sequence[Task],
    load_data: Callable[[Task, int], Data],
) -> Iterator[TaskResult | Skipped]:
    for task in tasks:
        try:
            folds = [load_data(task, fold) for fold in range(task.folds)]
        except DataUnavailableError as error:
            yield Skipped(task.name, str(error))
            continue
        for fold, data in enumerate(folds):
            for framework in frameworks:
                yield run_task(framework, task, fold, data)


def run_task(framework: Framework, task: Task, fold: int, data: Data) -> TaskResult:
    """Tune a model on a fold by cross-validation; return all scores and the best's test score."""
    architecture = ARCHITECTURES[framework.architecture]
    search = _by_advisor if framework.kind == "advisor" else _by_tuner

    def scored(parameters: dict[str, Any]) -> float:
        return _cross_score(architecture, parameters, task, data)

    scores, best = search(framework, task, fold, scored)
    model = _fitted(architecture, best, task, (data.train_x, data.train_y))
    test = score_of(model, data.test_x, data.test_y, task.metric)
    return TaskResult(framework.name, task, fold, tuple(scores), test, best)


def _mode(task: Task) -> str:
    return "maximize" if task.metric in GREATER_IS_BETTER else "minimize"


def _by_tuner(
    framework: Framework, task: Task, fold: int, scored: Callable[[dict[str, Any]], float]
) -> tuple[list[float], dict[str, Any]]:
    """Search with a tuner to the trial or time limit; return all scores, best hyperparameters.

    A score that is not finite counts as a failed trial.
    """
    study = Study(
        framework.search_space(),
        tuner=framework.tuner,
        optimize_mode=_mode(task),
        seed=framework.seed + fold,
    )
    began_s = time.monotonic()
    scores: list[float] = []
    while len(scores) < framework.trials and time.monotonic() - began_s < framework.time_limit_s:
        try:
            trial = study.ask()
        except NoMoreTrialError:
            break
        score = scored(trial.parameters)
        study.tell(trial, score if math.isfinite(score) else None)
        scores.append(score)
    return scores, study.best_parameters


def _by_advisor(
    framework: Framework, task: Task, fold: int, scored: Callable[[dict[str, Any]], float]
) -> tuple[list[float], dict[str, Any]]:
    """Search with an advisor, low budgets by cheaper models; return scores, best parameters."""
    architecture, space = ARCHITECTURES[framework.architecture], framework.search_space()
    budgets = _BUDGETS.get(framework.tuner, {})
    scores: list[float] = []

    def objective(proposed: dict[str, Any]) -> float:
        parameters = {name: proposed[name] for name in space}
        part = proposed.get(BUDGET_KEY, _LARGEST_BUDGET) / _LARGEST_BUDGET if budgets else 1.0
        scores.append(scored(architecture.cheaper(parameters, part)))
        return scores[-1]

    limit_s = framework.time_limit_s
    found = optimize(
        objective,
        space,
        advisor=framework.tuner,
        advisor_args=budgets,
        trials=framework.trials,
        optimize_mode=_mode(task),
        seed=framework.seed + fold,
        timeout=limit_s if math.isfinite(limit_s) else None,
    )
    return scores, {name: found.best_parameters[name] for name in space}


def _cross_score(
    architecture: Architecture, parameters: dict[str, Any], task: Task, data: Data
) -> float:
    from sklearn.model_selection import KFold, StratifiedKFold

    splitter = KFold if task.regression else StratifiedKFold
    splits = splitter(_CROSS_FOLDS, shuffle=True, random_state=0)
    scores = []
    for train, test in splits.split(data.train_x, data.train_y):
        part = data.train_x[train], data.train_y[train]
        model = _fitted(architecture, parameters, task, part)
        scores.append(score_of(model, data.train_x[test], data.train_y[test], task.metric))
    return float(np.mean(scores))


def _fitted(
    architecture: Architecture, parameters: dict[str, Any], task: Task, part: tuple[Any, Any]
) -> Any:  # noqa: ANN401 - scikit-learn is untyped
    model = architecture.model(parameters, task.regression, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the space includes few iterations
        return model.fit(*part)


def score_of(model: Any, x: Any, y: Any, metric: Metric) -> float:  # noqa: ANN401 - as above
    """Return a trained model's score on data by metric: rmse, r2, logloss or AUC."""
    from sklearn import metrics

    if metric == "rmse":
        return math.sqrt(float(np.mean((model.predict(x) - y) ** 2)))
    if metric == "r2":
        return float(metrics.r2_score(y, model.predict(x)))
    chances = model.predict_proba(x)
    if metric == "logloss":
        rows = np.arange(len(y))
        places = np.searchsorted(model.classes_, y)
        return float(-np.log(np.clip(chances[rows, places], _LEAST_CHANCE, 1)).mean())
    binary = len(model.classes_) == 2  # noqa: PLR2004 - the meaning of binary
    return float(metrics.roc_auc_score(y, chances[:, 1] if binary else chances, multi_class="ovr"))


def smaller(framework: Framework, trees: int) -> Framework:
    """Return a copy with fewer than `trees` trees, at least 4, and no more than before.

    Another model returns as it is.
    """
    space = framework.search_space()
    if "n_estimators" not in space:
        return framework
    upper = max(min(trees, MOST_TREES), LEAST_TREES + 1)
    few: JsonValue = {"_type": "randint", "_value": [LEAST_TREES, upper]}
    return replace(framework, space={**space, "n_estimators": few})
