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


@pytest.mark.parametrize("text", ["9" * 400 + "h", "9" * 400, "1-" + "9" * 400, "2h3", "1-", "-1"])
def test_time_that_no_clock_has_is_none(text: str) -> None:
    assert parse_time_limit(text) is None


@pytest.mark.parametrize("text", ["9" * 400 + "g", "9" * 400, "-1g", "1x", "g", ""])
def test_size_that_no_machine_has_is_none(text: str) -> None:
    assert parse_mebibytes(text) is None


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [
        ("1t", 1_048_576),
        ("1.333333333333333333g", 1365),
        ("4Gc", 4096),
        ("4Mn", 4),
        (" 2GiB ", 2048),
    ],
)
def test_size_may_have_any_unit_and_the_mark_of_cores_or_nodes(text: str, mebibytes: int) -> None:
    assert parse_mebibytes(text) == mebibytes


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("gpu:3,gpu:a100", {"gpu": 4}),
        ("gpu:a100=2", {"gpu": 2}),
        (" gpu:1 , shard:2 ", {"gpu": 1, "shard": 2}),
        ("gpu:0", {"gpu": 0}),
        ("gpu:2(IDX:0-1,3)", {"gpu": 2}),
        ("craynetwork:2,N/A", {"craynetwork": 2}),
    ],
)
def test_generic_resources_are_summed_over_their_parts(text: str, counts: dict[str, int]) -> None:
    assert parse_gres(text) == counts


@pytest.mark.parametrize(
    ("text", "indices"),
    [("7", [7]), ("2-2", [2]), ("1-6:2,9%1", [1, 3, 5, 9]), ("", []), ("a", [])],
)
def test_indices_may_be_numbers_and_ranges(text: str, indices: list[int]) -> None:
    assert parse_indices(text) == indices


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0-00:00:00"), (1, "0-00:01:00"), (3599, "0-01:00:00"), (86_400, "1-00:00:00"),
     (86_399, "1-00:00:00"), (3 * 86_400 + 2 * 3600 + 61, "3-02:02:00")],
)  # fmt: skip
def test_time_limit_has_days_hours_and_minutes(seconds: int, text: str) -> None:
    assert format_time_limit(seconds) == text
