"""What searches reached, and files of it: with versions, so that it can be repeated."""

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
"""Version of the file."""
_DIGITS: Final = 6
"""Significant ones of a kept regret: the last bits differ from one processor to another."""


@dataclass(frozen=True, slots=True)
class Run:
    """One search."""

    searcher: str
    problem: str
    seed: int
    trials: int
    """How many it was allowed; for schedulers how many parts of the time."""
    changes: tuple[tuple[int, float], ...]
    """(trial, counted from 1, regret from it on), wherever the regret changed."""

    def regret(self, after: int) -> float:
        """Return the regret after so many trials; inf: no point had kept all limits.

        Raises:
            ValueError: the run was shorter.
        """
        if not 1 <= after <= self.trials:
            raise ValueError(f"after must be from 1 to {self.trials}, got {after}")
        return next((regret for at, regret in reversed(self.changes) if at <= after), math.inf)


def run_of(searcher: str, problem: str, seed: int, trials: int, regrets: Sequence[float]) -> Run:
    """Return the run whose regret after each trial is given."""
    changes: list[tuple[int, float]] = []
    for place, regret in enumerate(regrets):
        kept = float(f"{regret:.{_DIGITS}g}")
        if math.isfinite(kept) and (not changes or changes[-1][1] != kept):
            changes.append((place + 1, kept))
    return Run(searcher, problem, seed, trials, tuple(changes))


def run(searcher: Searcher, problem: Problem, seed: int, trials: int) -> Run:
    """Search once.

    Raises:
        ImportError: a package of the searcher is missing.
    """
    evaluation = Evaluation(problem, seed, trials)
    searcher.search(evaluation)
    return run_of(searcher.name, problem.name, seed, trials, evaluation.regrets)


@dataclass(slots=True)
class Runs:
    """Many runs, one for each searcher, problem and seed."""

    versions: dict[str, str] = field(default_factory=dict)
    """Of the packages that made them."""
    _runs: dict[tuple[str, str], dict[int, Run]] = field(default_factory=dict)
    """By search and problem, then by seed: reports ask for these again and again."""

    def __len__(self) -> int:
        """Return how many there are."""
        return sum(len(seeds) for seeds in self._runs.values())

    def __iter__(self) -> Iterator[Run]:
        """Yield them, those of one search on one problem together."""
        return (run for seeds in self._runs.values() for run in seeds.values())

    def add(self, run: Run) -> None:
        """Add a run, or replace the same one if that was not longer."""
        seeds = self._runs.setdefault((run.searcher, run.problem), {})
        known = seeds.get(run.seed)
        if known is None or known.trials <= run.trials:
            seeds[run.seed] = run

    def get(self, searcher: str, problem: str, seed: int) -> Run | None:
        """Return a run; None if there is none."""
        return self._runs.get((searcher, problem), {}).get(seed)

    def regrets(self, searcher: str, problem: str, after: int) -> dict[int, float]:
        """Return regrets by seed, of the runs that are long enough."""
        seeds = self._runs.get((searcher, problem), {})
        return {seed: run.regret(after) for seed, run in seeds.items() if run.trials >= after}

    @property
    def searchers(self) -> tuple[str, ...]:
        """Names in the order of adding."""
        return tuple(dict.fromkeys(searcher for searcher, _ in self._runs))

    @property
    def problems(self) -> tuple[str, ...]:
        """Names in the order of adding."""
        return tuple(dict.fromkeys(problem for _, problem in self._runs))

    def to_json(self) -> str:
        """Return the text of a file."""
        tree: dict[str, dict[str, dict[str, object]]] = {}
        for run in self:
            seeds = tree.setdefault(run.searcher, {}).setdefault(run.problem, {})
            seeds[str(run.seed)] = [run.trials, *(list(change) for change in run.changes)]
        content = {"form": FORM, "versions": self.versions, "runs": tree}
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Runs:
        """Return the runs that a text tells.

        Raises:
            ValueError: it is of a later version, or none of these files.
        """
        try:
            content = json.loads(text)
            if content["form"] > FORM:
                raise ValueError(f"it has form {content['form']}, known are those up to {FORM}")  # noqa: TRY301 - said as one of its faults
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
    """Return the runs of several files as one; of a run that is in several the longest counts.

    Args:
        parts: files of runs.
        wanted: tells by its name whether the runs of a search are kept.

    Raises:
        ValueError: two were made with different versions of a package, so that they cannot be
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
    """Return the installed versions; a missing package is left out."""
    found: dict[str, str] = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def installed(searcher: Searcher) -> bool:
    """Return whether the packages of a searcher are there."""
    return len(versions(searcher.packages)) == len(searcher.packages)
