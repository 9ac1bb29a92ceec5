"""Times and lines of the samples of a trial's use."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from svc_trial_runner.domain.resource_use import (
    FIRST_SAMPLE_S,
    GpuUse,
    ProcessUse,
    ResourceSample,
    cores_used,
    next_interval_s,
    sample_line,
)

BEGIN = datetime(2026, 11, 27, 12, tzinfo=UTC)


def sample(after_s: float, cpu_s: float, gpus: tuple[GpuUse, ...] = ()) -> ResourceSample:
    use = ProcessUse(cpu_s, 1024, 2)
    return ResourceSample(BEGIN + timedelta(seconds=after_s), use, gpus)


@pytest.mark.parametrize(("age_s", "interval_s"), [(0, 1), (60, 1), (120, 2), (86400, 1440)])
def test_interval_grows_with_the_age(age_s: float, interval_s: float) -> None:
    assert next_interval_s(age_s, 0) == interval_s


def test_reading_a_trial_of_many_processes_takes_a_hundredth_of_a_core() -> None:
    assert next_interval_s(60, 0.5) == 50


def test_first_sample_is_taken_after_one_second() -> None:
    assert FIRST_SAMPLE_S == 1


def test_trial_of_a_day_has_about_500_samples() -> None:
    age_s, samples = FIRST_SAMPLE_S, 0
    while age_s < 86400:
        samples += 1
        age_s += next_interval_s(age_s, 0)

    assert 400 < samples < 600


def test_cores_are_the_cpu_time_per_elapsed_time() -> None:
    assert cores_used(sample(0, 10), sample(2, 15)) == 2.5
    assert cores_used(sample(0, 10), sample(0.5, 11)) == 2


def test_cpu_time_of_a_lost_child_counts_as_none() -> None:
    assert cores_used(sample(0, 10), sample(2, 9)) == 0


def test_no_elapsed_time_means_no_cores() -> None:
    assert cores_used(sample(2, 10), sample(2, 11)) == 0


def test_first_line_has_no_cores() -> None:
    line = sample_line(None, sample(0, 1))

    assert json.loads(line) == {
        "time": int(BEGIN.timestamp() * 1000),
        "memory": 1024,
        "processes": 2,
    }
    assert line.endswith(b"\n")


def test_shares_have_three_digits() -> None:
    gpus = (GpuUse(0, 2 / 3, 2048),)

    fields = json.loads(sample_line(sample(0, 1), sample(3, 2, gpus)))

    assert fields["cores"] == 0.333
    assert fields["gpus"][0]["utilization"] == 0.667


def test_line_has_cores_and_gpus() -> None:
    gpus = (GpuUse(3, 0.75, 2048),)

    fields = json.loads(sample_line(sample(0, 1), sample(4, 2, gpus)))

    assert fields["cores"] == 0.25
    assert fields["gpus"] == [{"index": 3, "utilization": 0.75, "memory": 2048}]


def test_lines_are_as_short_as_json_allows() -> None:
    line = sample_line(sample(0, 1), sample(4, 2, (GpuUse(3, 0.75, 2048),)))

    assert b" " not in line
