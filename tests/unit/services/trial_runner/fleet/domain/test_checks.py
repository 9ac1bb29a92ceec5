from datetime import UTC, datetime

import pytest

from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.checks import CheckRequest, PlatformFindings, expired, refusals

AWAY = PlatformProblem("machineList[0].host", "cannot be reached", permanent=False)
WRONG = PlatformProblem("partition", "does not exist")


def test_broken_rule_is_permanent() -> None:
    assert refusals([PlatformFindings([], None), PlatformFindings([WRONG], None)]) == [(1, WRONG)]


def test_one_machine_of_two_that_is_away_refuses_nothing() -> None:
    ((index, problem),) = refusals([PlatformFindings([AWAY], capacity=2)])

    assert (index, problem.permanent) == (0, False)


def test_platform_that_is_away_refuses_nothing_beside_another_one() -> None:
    found = refusals([PlatformFindings([AWAY], 1), PlatformFindings([], None)])

    assert [problem.permanent for _, problem in found] == [False]


def test_if_all_platforms_are_away_nothing_could_start() -> None:
    found = refusals([PlatformFindings([AWAY, AWAY], 2), PlatformFindings([AWAY], None)])

    assert [problem.permanent for _, problem in found] == [True, True, True]


def test_no_findings_refuse_nothing() -> None:
    assert refusals([]) == []


@pytest.mark.parametrize(
    ("late_s", "words"),
    [
        (0.0, "0 s"),
        (59.9, "59 s"),
        (60.0, "1 min"),
        (3599.0, "59 min"),
        (3600.0, "1 h"),
        (86_399.0, "23 h"),
        (86_400.0, "1 d"),
        (200_000.0, "2 d"),
    ],
)
def test_expired_request_names_how_long_ago_and_refuses_nothing(late_s: float, words: str) -> None:
    problem = expired(late_s)

    assert f"had expired {words} ago by the clock of the fleet" in problem.rule
    assert "NTP" in problem.remedy
    assert not problem.permanent


@pytest.mark.parametrize(
    ("problems", "capacity", "away"),
    [(0, None, False), (1, None, True), (1, 0, True), (1, 2, False), (2, 2, True), (3, 2, True)],
)
def test_platform_is_away_with_as_many_problems_as_machines(
    problems: int, capacity: int | None, *, away: bool
) -> None:
    assert PlatformFindings([AWAY] * problems, capacity).away is away


def test_request_checks_unless_it_asks_to_clean() -> None:
    request = CheckRequest("c1", (), datetime(2026, 11, 29, tzinfo=UTC))

    assert (request.cleans, request.dry_run) == (False, False)
