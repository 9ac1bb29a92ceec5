"""Requests to check platforms, and findings by which a configuration is refused."""

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


def expired(late_s: float) -> PlatformProblem:
    """Return the problem of a request that had expired when it was read.

    Either its manager has ended without deleting it, or the clock of the fleet is ahead.

    Args:
        late_s: seconds since its deadline, by the clock of the fleet; >= 0.
    """
    return PlatformProblem(
        "",
        f"was not asked: the request had expired {_words(late_s)} ago by the clock of the fleet",
        "",
        "set the clocks of the machines of manager and fleet alike, as by NTP",
        permanent=False,
    )


def _words(length_s: float) -> str:
    """Return a length of time in its largest whole unit, such as `3 h`."""
    units = (("d", 86_400), ("h", 3600), ("min", 60))
    name, size = next((one for one in units if length_s >= one[1]), ("s", 1))
    return f"{length_s // size:.0f} {name}"


def refusals(findings: Sequence[PlatformFindings]) -> list[tuple[int, PlatformProblem]]:
    """Return (platform number, problem) pairs; all marked permanent if no platform is usable.

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
