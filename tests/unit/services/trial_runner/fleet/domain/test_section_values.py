"""Names and values of options that sections share."""

import pytest

from svc_trial_runner.fleet.domain.section_values import (
    LEAST_POLL_S,
    POLL_S,
    camel_case,
    finite_number,
    gpu_numbers,
    is_endpoint,
    mebibytes,
    missing_problems,
    poll_problems,
    section_text,
    text_lines,
    whole_number,
)


@pytest.mark.parametrize(("name", "expected"), [("host", "host"), ("a_b_name", "aBName")])
def test_fields_have_names_of_sections(name: str, expected: str) -> None:
    assert camel_case(name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("one\ntwo", ("one", "two")),
        ("", ()),
        (["one", "two"], ("one", "two")),
        (("one",), ("one",)),
        (["one", 2], None),
        (3, None),
        (None, None),
    ],
)
def test_lines_are_a_text_or_a_list_of_texts(
    value: object, expected: tuple[str, ...] | None
) -> None:
    assert text_lines(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0),
        (-1.5, -1.5),
        (1e15, 1e15),
        (10**15 + 1, None),
        (1e16, None),
        (float("nan"), None),
        (float("-inf"), None),
        (10**400, None),
        (True, None),
        ("7", None),
        (None, None),
    ],
)
def test_number_is_finite_and_no_mistake(value: object, expected: float | None) -> None:
    assert finite_number(value) == expected


@pytest.mark.parametrize(
    ("value", "least", "expected"),
    [
        (0, 0, 0),
        (3.0, 1, 3),
        (0, 1, None),
        (-1, 0, None),
        (1.5, 0, None),
        (False, 0, None),
        ("2", 0, None),
        (float("inf"), 0, None),
    ],
)
def test_whole_number_may_be_a_double(value: object, least: int, expected: int | None) -> None:
    assert whole_number(value, least) == expected


def test_whole_number_is_not_negative_unless_allowed() -> None:
    assert (whole_number(0), whole_number(-1)) == (0, None)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("8gb", 8192.0),
        ("1.5 TB", 1.5 * 2**20),
        ("512kb", 0.5),
        ("300", 300.0),
        (8192, 8192.0),
        (0, None),
        ("0mb", None),
        (-1, None),
        ("8Gi", None),
        (f"{10**20}mb", None),
        (True, None),
        (None, None),
    ],
)
def test_size_has_a_unit_or_is_megabytes(size: object, expected: float | None) -> None:
    assert mebibytes(size) == expected


def test_least_interval_of_polls_is_valid() -> None:
    assert poll_problems(LEAST_POLL_S) == []


def test_shorter_interval_of_polls_is_a_problem_with_its_value() -> None:
    (problem,) = poll_problems(0.01)

    assert (problem.field, problem.rule) == ("pollIntervalSeconds", "must be >= 0.05")
    assert problem.value == "0.01"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, (0,)), ("0, 2", (0, 2)), ([3, "1"], (3, 1)), ([2.0], (2,)), ([], ())],
)
def test_gpus_are_numbers_lists_or_texts(value: object, expected: tuple[int, ...]) -> None:
    assert gpu_numbers(value) == expected


@pytest.mark.parametrize(
    "value", [True, 1.5, -1, "1.5", "", "a", "0,,1", [False], [None], {"a": 1}, float("nan")]
)
def test_other_values_are_no_gpus(value: object) -> None:
    with pytest.raises(ValueError, match="must be an integer >= 0, got"):
        gpu_numbers(value)


@pytest.mark.parametrize(
    ("section", "text"),
    [({"host": " a b "}, "a b"), ({"host": 3}, ""), ({"host": None}, ""), ({}, "")],
)
def test_text_of_a_section_is_stripped_and_empty_where_there_is_none(
    section: dict[str, object], text: str
) -> None:
    assert section_text(section, "host") == text


def test_each_text_that_is_missing_is_a_problem() -> None:
    problems = missing_problems({"host": "a", "user": " ", "key": 1}, ("host", "user", "key"))

    assert [(one.field, one.rule) for one in problems] == [
        ("user", "must be given"),
        ("key", "must be given"),
    ]


@pytest.mark.parametrize(
    "address",
    ["https://a.example.org", "https://10.0.0.1:8443", "http://127.0.0.1:80", "http://localhost"],
)
def test_endpoint_is_reached_by_https_or_on_loopback(address: str) -> None:
    assert is_endpoint(address)


@pytest.mark.parametrize(
    "address",
    [
        "http://a.example.org",
        "http://127.0.0.1.example.org",
        "http://localhost.example.org",
        "https://user@a.example.org",
        "https://a.example.org/path",
        "https://a.example.org\n",
        "a.example.org",
        "",
    ],
)
def test_other_addresses_are_no_endpoints(address: str) -> None:
    assert not is_endpoint(address)


def test_clusters_are_asked_every_ten_seconds_unless_the_section_says_otherwise() -> None:
    assert POLL_S == 10.0
