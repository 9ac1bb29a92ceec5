"""Requests to check platforms, and what of their findings refuses a configuration."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.needs import PoolPlatform


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Request to check or clean platforms: id, their sections, deadline, dry run."""

    check_id: str
    platforms: tuple[PoolPlatform, ...]
    deadline: datetime
    """No manager waits for an answer after this time; aware, UTC."""
    cleans: bool = False
    """True: the platforms are cleaned and not checked."""
    dry_run: bool = False
    """True: a cleaning removes nothing."""


@dataclass(frozen=True, slots=True)
class PlatformFindings:
    """Findings of one platform's check: its problems, and how many agents it can have."""

    problems: Sequence[PlatformProblem]
    capacity: int | None
    """Agents that it can have; None: no limit, or unknown."""

    @property
    def away(self) -> bool:
        """True if no part of the platform can be used now: as many problems as it has machines."""
        return len(self.problems) >= (self.capacity or 1)


def refusals(findings: Sequence[PlatformFindings]) -> list[tuple[int, PlatformProblem]]:
    """Return all problems by platform number; permanent if all platforms are away.

    Those of platforms that are away are permanent if all are: nothing could start, and the likely
    reason is a mistake such as a wrong host.
    """
    all_away = bool(findings) and all(one.away for one in findings)
    return [
        (index, replace(problem, permanent=True) if all_away else problem)
        for index, problem in _numbered(findings)
    ]


def _numbered(findings: Sequence[PlatformFindings]) -> Iterator[tuple[int, PlatformProblem]]:
    for index, one in enumerate(findings):
        for problem in one.problems:
            yield index, problem
