from __future__ import annotations

from datetime import timedelta

import pytest

from nni.experiment.config.quantities import (
    duration_seconds,
    duration_text,
    gpu_indices,
    is_slurm_time,
    size_bytes,
)


@pytest.mark.claim("platform", 5)
@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0.5h", 1800), ("10m", 600), ("30s", 30), ("2d", 172800), ("1.5 m", 90)],
)
def test_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.claim("platform", 5)
@pytest.mark.parametrize("text", ["10", "5w", "-1m", "", "m", "1h30m", "0s", "1e3s", "10M"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        duration_seconds(text)


def test_duration_beyond_what_a_message_holds_is_refused() -> None:
    assert duration_seconds("3650000d") == 315_360_000_000
    with pytest.raises(ValueError, match="must be at most 3650000d"):
        duration_seconds("3650001d")


def test_duration_text_reads_back() -> None:
    assert duration_seconds(duration_text(timedelta(minutes=90, milliseconds=250))) == 5400.25


@pytest.mark.parametrize(
    ("text", "size"),
    [("8gb", 8 << 30), ("8GB", 8 << 30), ("0.5mb", 1 << 19), ("1 tb", 1 << 40), ("3Kb", 3072)],
)
def test_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["8", "8Gi", "gb", "-1gb", "0gb"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        size_bytes(text)


@pytest.mark.parametrize(
    ("value", "indices"),
    [(1, [1]), ("1", [1]), ("0,2", [0, 2]), ("0, 2", [0, 2]), ([0, 2], [0, 2]), ("", [])],
)
def test_gpus_have_four_spellings(value: object, indices: list[int]) -> None:
    assert gpu_indices(value) == indices


@pytest.mark.parametrize("value", ["a", "-1", [-1], [0.5], True, [True], {}, "0,,1", 1.0])
def test_other_gpu_lists_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be GPU numbers"):
        gpu_indices(value)


def test_gpu_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        gpu_indices("1,1")


@pytest.mark.parametrize(
    "text", ["4h", "1.5 d", "90m", "60", "90:30", "1:30:00", "1-12", "1-12:30", "0-12:00:00"]
)
def test_times_of_slurm_are_durations_and_its_own_forms(text: str) -> None:
    assert is_slurm_time(text)


@pytest.mark.parametrize("text", ["soon", "", "0", "0:00", "-1", "4 hours", "1:2:3:4", "UNLIMITED"])
def test_other_texts_are_no_times_of_slurm(text: str) -> None:
    assert not is_slurm_time(text)
