"""Options that sections of platforms with jobs share."""

import pytest

from svc_trial_runner.fleet.adapters.job_options import (
    JobOptions,
    job_option_problems,
    parse_job_options,
)
from svc_trial_runner.fleet.domain.section_values import POLL_S

SECTION: dict[str, object] = {
    "python": "/opt/python",
    "pythonPath": "/opt/bin",
    "setupLines": ["module load cuda", "ulimit -c 0"],
    "pollIntervalSeconds": 2,
    "reuseMode": False,
}


def test_options_are_those_of_the_section() -> None:
    lines = ("module load cuda", "ulimit -c 0")

    assert parse_job_options(SECTION) == JobOptions("/opt/python", "/opt/bin", lines, 2.0, False)
    assert job_option_problems(SECTION) == []


def test_options_that_are_not_given_have_their_defaults() -> None:
    assert parse_job_options({"python": " ", "setupLines": None}) == JobOptions()
    assert job_option_problems({}) == []


def test_setup_lines_may_be_one_text() -> None:
    assert parse_job_options({"setupLines": "a\nb"}).setup_lines == ("a", "b")


def test_long_value_is_shown_in_part() -> None:
    (problem,) = job_option_problems({"setupLines": [1] * 100})

    assert problem.value == repr([1] * 100)[:80]


def test_interval_may_be_of_days_but_not_of_years() -> None:
    assert parse_job_options({"pollIntervalSeconds": 1e6}).poll_interval_s == 1e6
    (problem,) = job_option_problems({"pollIntervalSeconds": 1_000_001})
    assert problem.rule == "must be a number of seconds"


@pytest.mark.parametrize("given", [float("nan"), float("inf"), 10**400, True, "1"])
def test_interval_that_is_no_number_is_a_problem_and_the_default_one(given: object) -> None:
    section = {"pollIntervalSeconds": given}

    (problem,) = job_option_problems(section)

    assert (problem.field, problem.rule) == ("pollIntervalSeconds", "must be a number of seconds")
    assert parse_job_options(section).poll_interval_s == POLL_S


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("python", 3, "must be text"),
        ("pythonPath", ["/opt"], "must be text"),
        ("setupLines", ["a", 1], "must be a list of texts"),
        ("reuseMode", "no", "must be true or false"),
        ("pollIntervalSeconds", 0, "must be >= 0.05"),
    ],
)
def test_broken_rule_is_named_with_the_value(name: str, value: object, rule: str) -> None:
    (problem,) = job_option_problems({name: value})

    assert (problem.field, problem.rule, problem.value) == (name, rule, repr(value))
