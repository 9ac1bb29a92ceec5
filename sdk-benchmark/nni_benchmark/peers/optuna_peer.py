"""Adapter of Optuna's samplers, with default settings except those in the name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import CONSTRAINTS_KEY
from nni_benchmark.problem import Configuration, Evaluation, Problem
from nni_benchmark.searcher import single_objective

Sampler = Literal["tpe", "tpe-univariate", "tpe-group", "gp", "cma", "nsga2", "random"]
_EXCESS: Final = "excess"
_TYPES: Final = frozenset({"choice", "randint", "uniform", "quniform", "loguniform"})
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class OptunaSearcher:
    """Searcher by one of Optuna's samplers (TPE, GP, CMA-ES, NSGA-II, random), by ask and tell."""

    sampler: Sampler

    @property
    def name(self) -> str:
        """Name in reports; `library-sampler` for peers."""
        return f"optuna-{self.sampler}"

    @property
    def packages(self) -> tuple[str, ...]:
        """Required packages besides NNI and numpy."""
        more = {"cma": ("cmaes",), "gp": ("torch", "scipy")}
        return ("optuna", *more.get(self.sampler, ()))

    def takes(self, problem: Problem) -> bool:
        """Return whether the sampler supports a problem and is meant for its kind.

        `tpe-group` differs from `tpe` in nested spaces only; `nsga2` is meant for several
        objectives; `cma` supports one, and no limits on outcomes.
        """
        if self.sampler == "tpe-group" and problem.flat:
            return False
        if self.sampler == "cma" and (problem.excess or not single_objective(problem)):
            return False
        if self.sampler == "nsga2" and single_objective(problem):
            return False
        return _types(problem.space) <= _TYPES

    def search(self, evaluation: Evaluation) -> None:
        """Run Optuna by ask and tell until the trials are used up; the evaluation keeps regrets."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        problem = evaluation.problem
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some options of samplers are experimental
            study = optuna.create_study(
                sampler=_sampler(self.sampler, problem, evaluation.seed),
                directions=["minimize"] * len(problem.metrics),
            )
            while evaluation.left:
                trial = study.ask()
                outcome = evaluation(_suggested(trial, problem.space, ""))
                if outcome.losses is None:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    trial.set_user_attr(_EXCESS, outcome.excess)
                    study.tell(trial, list(outcome.losses))


def _sampler(name: Sampler, problem: Problem, seed: int) -> Any:  # noqa: ANN401 - ships no types
    from optuna import samplers

    limits: dict[str, Any] = {}
    if problem.excess is not None:
        limits["constraints_func"] = _excess
    match name:
        case "tpe":
            return samplers.TPESampler(seed=seed, **limits)
        case "tpe-univariate":
            return samplers.TPESampler(seed=seed, multivariate=False, **limits)
        case "tpe-group":
            return samplers.TPESampler(seed=seed, multivariate=True, group=True, **limits)
        case "gp":
            return samplers.GPSampler(seed=seed, **limits)
        case "cma":
            return samplers.CmaEsSampler(seed=seed)
        case "nsga2":
            return samplers.NSGAIISampler(seed=seed, **limits)
        case "random":
            return samplers.RandomSampler(seed=seed)


def _excess(trial: Any) -> Sequence[float]:  # noqa: ANN401 - ships no types
    return (trial.user_attrs[_EXCESS],)


def _types(space: Mapping[str, JsonValue]) -> set[str]:
    found: set[str] = set()
    for key, entry in space.items():
        if key in {CONSTRAINTS_KEY, "_name"}:
            continue
        found.add(entry["_type"])
        for option in entry["_value"]:
            if isinstance(option, dict):
                found |= _types(option)
    return found


def _suggested(trial: Any, space: Mapping[str, JsonValue], prefix: str) -> Configuration:  # noqa: ANN401 - ships no types
    return {
        key: _value(trial, entry, prefix + key)
        for key, entry in space.items()
        if key not in {CONSTRAINTS_KEY, "_name"}
    }


def _value(trial: Any, entry: JsonValue, name: str) -> Any:  # noqa: ANN401 - ships no types
    kind, values = entry["_type"], entry["_value"]
    if kind == "choice":
        branches = {option["_name"]: option for option in values if isinstance(option, dict)}
        chosen = trial.suggest_categorical(name, list(branches) or values)
        if not branches:
            return chosen
        return {"_name": chosen, **_suggested(trial, branches[chosen], f"{name}/{chosen}/")}
    if kind == "randint":
        return trial.suggest_int(name, values[0], values[1] - 1)
    step = values[_PAIR] if len(values) > _PAIR else None
    return trial.suggest_float(name, *values[:_PAIR], log=kind == "loguniform", step=step)
