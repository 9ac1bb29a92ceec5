"""Durations as numbers of seconds."""

from datetime import timedelta

import pytest

from nni.hpo.search.durations import seconds_of


@pytest.mark.parametrize("duration", [90, 90.0, timedelta(minutes=1.5)])
def test_seconds_and_timedeltas_are_seconds(duration: float | timedelta) -> None:
    assert seconds_of("duration", duration) == 90.0


@pytest.mark.parametrize("duration", [0.5, 1, 1e-6])
def test_any_positive_duration_is_one(duration: float) -> None:
    assert seconds_of("duration", duration) == duration


@pytest.mark.parametrize(
    "duration", [0, -1, float("nan"), float("inf"), timedelta(0), timedelta(seconds=-1)]
)
def test_duration_is_positive_and_finite(duration: float | timedelta) -> None:
    with pytest.raises(ValueError, match="duration must be a finite number of seconds > 0 or a"):
        seconds_of("duration", duration)
