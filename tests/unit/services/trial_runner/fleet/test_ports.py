"""Errors of platforms, and the problems that they become."""

import pytest

from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.ports import PlatformError


def test_error_of_a_platform_may_pass_unless_it_says_otherwise() -> None:
    error = PlatformError("it is away")

    assert (error.message, error.remedy, error.permanent) == ("it is away", "", False)


@pytest.mark.parametrize("permanent", [False, True])
def test_error_becomes_a_problem_of_a_field_with_its_remedy(*, permanent: bool) -> None:
    error = PlatformError("cannot be reached", "try ssh", permanent=permanent)

    assert error.problem("host", "box") == PlatformProblem(
        "host", "cannot be reached", "box", "try ssh", permanent=permanent
    )
    assert error.problem("host").value == ""
