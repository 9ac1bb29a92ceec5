"""Adapter of hyperopt's TPE with default settings."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import CONSTRAINTS_KEY
from nni_benchmark.problem import Configuration, Evaluation, Problem
from nni_benchmark.searcher import single_objective

_MADE: Final = frozenset({CONSTRAINTS_KEY, "_name"})


@dataclass(frozen=True, slots=True)
class HyperoptSearcher:
    """Searcher by Hyperopt's `fmin` (TPE), for one objective; infeasible points count as failed."""

    name: str = "hyperopt-tpe"
    packages: tuple[str, ...] = ("hyperopt",)

    def takes(self, problem: Problem) -> bool:
        """Return whether a problem has one objective."""
        return single_objective(problem)

    def search(self, evaluation: Evaluation) -> None:
        """Run Hyperopt's `fmin` until the trials are used up; the evaluation keeps the regrets."""
        import hyperopt

        def objective(point: Configuration) -> dict[str, Any]:
            outcome = evaluation(point)
            if outcome.losses is None or outcome.excess:
                return {"status": hyperopt.STATUS_FAIL}
            return {"status": hyperopt.STATUS_OK, "loss": outcome.losses[0]}

        logger = logging.getLogger("hyperopt")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                hyperopt.fmin(
                    objective,
                    _space(evaluation.problem.space, ""),
                    algo=hyperopt.tpe.suggest,
                    max_evals=evaluation.trials,
                    trials=hyperopt.Trials(),
                    rstate=np.random.default_rng(evaluation.seed),
                    show_progressbar=False,
                    return_argmin=False,
                )
        finally:
            logger.setLevel(level)


def _space(space: Mapping[str, JsonValue], prefix: str) -> dict[str, Any]:
    return {
        key: _expression(entry, prefix + key) for key, entry in space.items() if key not in _MADE
    }


def _expression(entry: JsonValue, name: str) -> Any:  # noqa: ANN401 - ships no types
    from hyperopt import hp

    kind, values = entry["_type"], entry["_value"]
    if kind == "choice":
        return hp.choice(name, [_option(option, name) for option in values])
    if kind == "randint":
        # hyperopt's `randint` is categorical.
        return hp.uniformint(name, values[0], values[1] - 1)
    if kind == "loguniform":
        return hp.loguniform(name, *(math.log(value) for value in values))
    return getattr(hp, kind)(name, *values)


def _option(option: JsonValue, name: str) -> Any:  # noqa: ANN401 - ships no types
    if not isinstance(option, dict):
        return option
    return {"_name": option["_name"], **_space(option, f"{name}/{option['_name']}/")}
