"""Searchers: the protocol of what is compared, and tuners of NNI as searchers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Protocol

from nni.errors import NoMoreTrialError
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.factory import algorithms, validate
from nni.hpo.registry.validation import check_count
from nni.hpo.search.outcomes import StudyTrial
from nni.hpo.search.study import Study
from nni_benchmark.problem import LIMITED_METRIC, METRIC, Evaluation, Problem

PARALLEL_MARK: Final = "@"
"""Separator of tuner and concurrency: `TPE@10` has ten trials open at a time."""


class Searcher(Protocol):
    """Interface of a search method that evaluates configurations until the trials are used up."""

    @property
    def name(self) -> str:
        """Name in reports; `library-sampler` for peers."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """Required packages besides NNI and numpy."""
        ...

    def takes(self, problem: Problem) -> bool:
        """Return whether the searcher supports a problem."""
        ...

    def search(self, evaluation: Evaluation) -> None:
        """Evaluate configurations on a problem until its trials are used up, seeded.

        `evaluation.seed` determines all randomness: the same call gives the same regrets.
        """
        ...


@dataclass(frozen=True, slots=True)
class TunerSearcher:
    """Searcher by a tuner of NNI, with one or several trials open at a time."""

    tuner: str
    """Built-in or registered name."""
    tuner_args: dict[str, JsonValue] = field(default_factory=dict)
    name: str = ""
    """Name in reports; empty for the tuner's, with `@` and the concurrency unless that is 1."""
    packages: tuple[str, ...] = ()
    concurrency: int = 1
    """Number of open trials, >= 1, which end in the order of start."""

    def __post_init__(self) -> None:
        check_count("concurrency", self.concurrency, least=1)
        if not self.name:
            several = f"{PARALLEL_MARK}{self.concurrency}" if self.concurrency > 1 else ""
            object.__setattr__(self, "name", f"{self.tuner}{several}")

    def takes(self, problem: Problem) -> bool:
        """Return whether NNI's tuner accepts a space, and several metrics or a limited one."""
        try:
            several = len(problem.metrics) > 1 or problem.excess is not None
            validate("tuner", self.tuner, self.tuner_args, problem.space, several_outcomes=several)
        except ValueError:
            return False
        return True

    def search(self, evaluation: Evaluation) -> None:
        """Run NNI's tuner until the trials are used up, `concurrency` of them open at a time."""
        study = _study(self, evaluation.problem, evaluation.seed)
        running: deque[StudyTrial] = deque()
        exhausted = False
        while evaluation.left:
            while not exhausted and len(running) < min(self.concurrency, evaluation.left):
                try:
                    running.append(study.ask())
                except NoMoreTrialError:
                    exhausted = True
            if not running:
                return
            _end(study, running.popleft(), evaluation)


def _end(study: Study, trial: StudyTrial, evaluation: Evaluation) -> None:
    """Evaluate a trial; tell the study its losses and excess, or None if it is not allowed."""
    problem, outcome = evaluation.problem, evaluation(trial.parameters)
    if outcome.losses is None:
        study.tell(trial, None)
    elif len(problem.metrics) == 1 and problem.excess is None:
        study.tell(trial, outcome.losses[0])
    else:
        losses = dict(zip(problem.metrics, outcome.losses, strict=True))
        study.tell(trial, {**losses, LIMITED_METRIC: outcome.excess})


def _study(searcher: TunerSearcher, problem: Problem, seed: int) -> Study:
    plain = len(problem.metrics) == 1 and problem.excess is None
    limits = [{"metric": LIMITED_METRIC, "max": 0}] if problem.excess else None
    return Study(
        problem.space,
        tuner=searcher.tuner,
        tuner_args=searcher.tuner_args,
        optimize_mode="minimize" if plain else dict.fromkeys(problem.metrics, "minimize"),
        constraints=limits,
        seed=seed,
    )


_UNLIMITED: tuple[str, ...] = (
    "auto",
    "TPE",
    "GPTuner",
    "SMAC",
    "CmaEs",
    "Anneal",
    "Evolution",
    "NSGA2",
    "MetisTuner",
    "DNGOTuner",
    "Random",
)


def tuner_searchers() -> tuple[TunerSearcher, ...]:
    """Return the built-in tuners without a limit of proposals, the default one first."""
    known = {entry.name for entry in algorithms("tuner")}
    return tuple(TunerSearcher(name) for name in _UNLIMITED if name in known)


def single_objective(problem: Problem) -> bool:
    """Return whether a problem has a single objective."""
    return problem.metrics == (METRIC,)
