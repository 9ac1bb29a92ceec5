"""Times, sizes and counts of Slurm."""

import pytest

from svc_trial_runner.fleet.adapters.slurm.quantities import (
    format_time_limit,
    parse_gres,
    parse_indices,
    parse_mebibytes,
    parse_time_limit,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 3600),
        ("1:30", 90),
        ("2:00:00", 7200),
        ("2:30:15", 9015),
        (" 2:00 ", 120),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("1-00:00:10", 86_410),
        ("2-03:04:05", 183_845),
        ("2h", 7200),
        ("1.5h", 5400),
        ("90s", 90),
        ("2m", 120),
        ("2d", 172_800),
        ("UNLIMITED", None),
        ("NONE", None),
        ("soon", None),
        ("", None),
    ],
)
def test_time_in_all_forms_is_read(text: str, seconds: int | None) -> None:
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(60, "0-00:01:00"), (61, "0-00:02:00"), (131_400, "1-12:30:00")]
)
def test_time_limit_is_rounded_up_to_minutes(seconds: int, text: str) -> None:
    assert format_time_limit(seconds) == text


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [
        ("4G", 4096),
        ("500M", 500),
        ("1024", 1024),
        ("2048K", 2),
        ("8192000k", 8000),
        ("1.5gb", 1536),
        ("much", None),
    ],
)
def test_size_is_read(text: str, mebibytes: int | None) -> None:
    assert parse_mebibytes(text) == mebibytes


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("gpu:2", {"gpu": 2}),
        ("gpu", {"gpu": 1}),
        ("gpu:a100:4(S:0-1)", {"gpu": 4}),
        ("gpu:a100:2,gpu:v100:1,shard:8", {"gpu": 3, "shard": 8}),
        ("gres/gpu=2", {"gpu": 2}),
        ("(null)", {}),
        ("N/A", {}),
        ("", {}),
    ],
)
def test_generic_resources_are_counted_by_name(text: str, counts: dict[str, int]) -> None:
    assert parse_gres(text) == counts


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("3,5,9", [3, 5, 9]),
        ("[2-4,7]", [2, 3, 4, 7]),
        ("0-6:3%2", [0, 3, 6]),
        ("1-2,...", [1, 2]),
        ("N/A", []),
    ],
)
def test_indices_of_an_array_are_read(text: str, indices: list[int]) -> None:
    assert parse_indices(text) == indices
