"""What is compared: anything that can propose points and learn from their outcomes."""

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
"""`TPE@10` is TPE with ten trials open at a time."""


class Searcher(Protocol):
    """A way to search."""

    @property
    def name(self) -> str:
        """In reports; tuners of NNI have their own, peers `library-sampler`."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """Installed packages that the outcome depends on, besides NNI and numpy."""
        ...

    def takes(self, problem: Problem) -> bool:
        """Return whether it can search the space of a problem."""
        ...

    def search(self, evaluation: Evaluation) -> None:
        """Propose and learn until no trial is left, or there is nothing left to propose.

        Everything random follows from `evaluation.seed`: the same call gives the same regrets.
        """
        ...


@dataclass(frozen=True, slots=True)
class TunerSearcher:
    """A tuner of NNI, in a `Study`."""

    tuner: str
    """A built-in or registered name."""
    tuner_args: dict[str, JsonValue] = field(default_factory=dict)
    name: str = ""
    """Its name in reports; if empty that of the tuner, followed by `@` and the concurrency unless
    that is 1."""
    packages: tuple[str, ...] = ()
    concurrency: int = 1
    """How many trials are open at a time, >= 1. They end in the order in which they started."""

    def __post_init__(self) -> None:
        check_count("concurrency", self.concurrency, least=1)
        if not self.name:
            several = f"{PARALLEL_MARK}{self.concurrency}" if self.concurrency > 1 else ""
            object.__setattr__(self, "name", f"{self.tuner}{several}")

    def takes(self, problem: Problem) -> bool:
        """See `Searcher`."""
        try:
            several = len(problem.metrics) > 1 or problem.excess is not None
            validate("tuner", self.tuner, self.tuner_args, problem.space, several_outcomes=several)
        except ValueError:
            return False
        return True

    def search(self, evaluation: Evaluation) -> None:
        """See `Searcher`."""
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
    """Evaluate a trial and tell what came out."""
    problem, outcome = evaluation.problem, evaluation(trial.parameters)
    if outcome.losses is None:
        study.tell(trial, None)
    elif len(problem.metrics) == 1 and problem.excess is None:
        study.tell(trial, outcome.losses[0])
    else:
        told = dict(zip(problem.metrics, outcome.losses, strict=True))
        study.tell(trial, {**told, LIMITED_METRIC: outcome.excess})


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


_SEARCHING: tuple[str, ...] = (
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
    """Return the built-in tuners that search any amount of points, the default one first."""
    known = {entry.name for entry in algorithms("tuner")}
    return tuple(TunerSearcher(name) for name in _SEARCHING if name in known)


def single_objective(problem: Problem) -> bool:
    """Return whether a problem is one of one objective, for peers that know no other."""
    return problem.metrics == (METRIC,)
