"""Runs of searchers with their regrets, and files of runs with the versions of packages."""

from __future__ import annotations

import importlib.metadata
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from nni_benchmark.problem import Evaluation, Problem
from nni_benchmark.searcher import Searcher

FORM: Final = 1
"""Version of the file format."""
_ALSO_FROM: Final = {"xgboost": "xgboost-cpu"}
"""Other distributions of the same package."""
_DIGITS: Final = 6
"""Significant digits of a stored regret: the last bits differ between processors."""


@dataclass(frozen=True, slots=True)
class Run:
    """Regrets of one search (searcher, problem, seed) over its trials, stored at each change."""

    searcher: str
    problem: str
    seed: int
    trials: int
    """Budget of trials; for schedulers the number of time steps."""
    changes: tuple[tuple[int, float], ...]
    """(trial, from 1, and regret from it on) at every change of the regret."""

    def regret(self, after: int) -> float:
        """Return the regret after a number of trials; infinite before the first feasible one.

        Raises:
            ValueError: the run is shorter.
        """
        if not 1 <= after <= self.trials:
            raise ValueError(f"after must be from 1 to {self.trials}, got {after}")
        return next((regret for at, regret in reversed(self.changes) if at <= after), math.inf)


def run_of(searcher: str, problem: str, seed: int, trials: int, regrets: Sequence[float]) -> Run:
    """Build a run from the regret after each trial: changes only, finite, rounded to 6 digits."""
    changes: list[tuple[int, float]] = []
    for place, regret in enumerate(regrets):
        kept = float(f"{regret:.{_DIGITS}g}")
        if math.isfinite(kept) and (not changes or changes[-1][1] != kept):
            changes.append((place + 1, kept))
    return Run(searcher, problem, seed, trials, tuple(changes))


def run(searcher: Searcher, problem: Problem, seed: int, trials: int) -> Run:
    """Search a problem with a searcher, seed and number of trials; return the `Run` of regrets.

    Raises:
        ImportError: a package of the searcher is missing.
    """
    evaluation = Evaluation(problem, seed, trials)
    searcher.search(evaluation)
    return run_of(searcher.name, problem.name, seed, trials, evaluation.regrets)


@dataclass(slots=True)
class Runs:
    """Collection of runs by searcher, problem and seed, with package versions; JSON format."""

    versions: dict[str, str] = field(default_factory=dict)
    """Versions of the packages of the runs."""
    _runs: dict[tuple[str, str], dict[int, Run]] = field(default_factory=dict)
    """Index by searcher and problem, then by seed, for reports."""

    def __len__(self) -> int:
        """Return the number of runs."""
        return sum(len(seeds) for seeds in self._runs.values())

    def __iter__(self) -> Iterator[Run]:
        """Yield all runs, grouped by searcher and problem."""
        return (run for seeds in self._runs.values() for run in seeds.values())

    def add(self, run: Run) -> None:
        """Add a run; it replaces one of the same seed unless that has more trials."""
        seeds = self._runs.setdefault((run.searcher, run.problem), {})
        known = seeds.get(run.seed)
        if known is None or known.trials <= run.trials:
            seeds[run.seed] = run

    def get(self, searcher: str, problem: str, seed: int) -> Run | None:
        """Return a run; None if there is none."""
        return self._runs.get((searcher, problem), {}).get(seed)

    def regrets(self, searcher: str, problem: str, after: int) -> dict[int, float]:
        """Return regrets by seed, of runs with enough trials."""
        seeds = self._runs.get((searcher, problem), {})
        return {seed: run.regret(after) for seed, run in seeds.items() if run.trials >= after}

    @property
    def searchers(self) -> tuple[str, ...]:
        """Names in order of insertion."""
        return tuple(dict.fromkeys(searcher for searcher, _ in self._runs))

    @property
    def problems(self) -> tuple[str, ...]:
        """Names in order of insertion."""
        return tuple(dict.fromkeys(problem for _, problem in self._runs))

    def to_json(self) -> str:
        """Return all runs and package versions as compact JSON text."""
        tree: dict[str, dict[str, dict[str, object]]] = {}
        for run in self:
            seeds = tree.setdefault(run.searcher, {}).setdefault(run.problem, {})
            seeds[str(run.seed)] = [run.trials, *(list(change) for change in run.changes)]
        content = {"form": FORM, "versions": self.versions, "runs": tree}
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Runs:
        """Parse runs from JSON text; raise ValueError for another format or a later version.

        Raises:
            ValueError: the text is no file of runs, or of a later version.
        """
        try:
            content = json.loads(text)
            if content["form"] > FORM:
                raise ValueError(f"it has form {content['form']}, known are those up to {FORM}")  # noqa: TRY301 - mapped with the other faults
            runs = cls(dict(content["versions"]))
            for searcher, problems in content["runs"].items():
                for problem, seeds in problems.items():
                    for seed, (trials, *changes) in seeds.items():
                        pairs = tuple((int(at), float(regret)) for at, regret in changes)
                        runs.add(Run(searcher, problem, int(seed), int(trials), pairs))
            return runs
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"the text is no file of runs: {error}") from error


def merged(parts: Iterable[Runs], wanted: Callable[[str], bool] = lambda _: True) -> Runs:
    """Merge collections of runs, keeping the longest; raise if package versions differ.

    Args:
        parts: collections of runs.
        wanted: predicate of the names of searchers to keep.

    Raises:
        ValueError: two collections have different versions of a package, so that they cannot be
            repeated together.
    """
    found = Runs()
    for part in parts:
        for name, version in part.versions.items():
            if found.versions.setdefault(name, version) != version:
                raise ValueError(
                    f"all runs must be made with one version of {name}, "
                    f"got {found.versions[name]} and {version}"
                )
        for one in part:
            if wanted(one.searcher):
                found.add(one)
    return found


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return {package: installed version} of the packages that are installed."""
    found: dict[str, str] = {}
    for name in packages:
        try:
            found[name] = _version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        if package not in _ALSO_FROM:
            raise
        return importlib.metadata.version(_ALSO_FROM[package])


def installed(searcher: Searcher) -> bool:
    """Return whether the packages of a searcher are installed."""
    return len(versions(searcher.packages)) == len(searcher.packages)
