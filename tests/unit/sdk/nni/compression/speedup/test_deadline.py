"""Time limit of planning, with a clock that the test moves."""

import pytest

from nni.compression.speedup.deadline import Deadline


def test_the_deadline_has_passed_after_the_limit_and_not_at_it() -> None:
    now = [10.0]
    deadline = Deadline(5.0, lambda: now[0])

    passed = []
    for now[0] in (10.0, 15.0, 15.1):
        passed.append(deadline.passed())

    assert passed == [False, False, True]
    assert deadline.reason == "planning exceeded time_limit_s=5"


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_limit_that_is_no_time_is_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="time_limit_s must be above 0"):
        Deadline(limit)
