import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.pagination import (
    Place,
    number_of,
    page_after,
    page_behind,
    page_size,
    token_moment,
)


def test_pages_join_to_the_whole_list() -> None:
    items, token, seen = list(range(0, 20, 2)), "", []

    while True:
        page = page_behind(items, int, token, 4, number_of)
        seen += page.items
        assert page.total == 10
        token = page.next_token
        if not token:
            break

    assert seen == items


def test_what_goes_between_two_pages_shifts_nothing() -> None:
    first = page_behind(["a", "b", "c", "d", "e"], str, "", 2, str)

    second = page_behind(["a", "ab", "c", "d", "e"], str, first.next_token, 2, str)

    assert (first.items, second.items, second.next_token) == (["a", "b"], ["c", "d"], "d")


@pytest.mark.parametrize("token", ["-1", "x", "1.5", "\uff19", "9" * 30])
def test_an_unknown_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgumentError, match="page_token"):
        page_behind([1], int, token, 1, number_of)


def test_sizes_have_a_default_and_a_limit() -> None:
    assert page_size(0, default=100, limit=1000) == 100
    assert page_size(5000, default=100, limit=1000) == 1000
    with pytest.raises(InvalidArgumentError):
        page_size(-1, default=100, limit=1000)


def ranked(keys: dict[int, float | None]) -> list[tuple[Place, int]]:
    rows = [((key is None, key or 0.0, number), number) for number, key in keys.items()]
    return sorted(rows)


def test_pages_by_place_join_to_the_whole_list() -> None:
    rows = ranked({0: 3.0, 1: None, 2: float("-inf"), 3: 1e300, 4: 3.0, 5: None, 6: 0.1 + 0.2})

    token, seen = "", list[int]()
    while True:
        page = page_after(rows, token, 2, 17)
        seen += page.items
        token = page.next_token
        if not token:
            break

    assert seen == [2, 6, 0, 4, 3, 1, 5]


def test_items_that_come_and_go_shift_no_other_between_pages() -> None:
    before = ranked({number: float(number) for number in range(10)})
    first = page_after(before, "", 4)

    after = ranked({number: float(number) for number in range(12) if number != 1})
    second = page_after(after, first.next_token, 4)

    assert (first.items, second.items) == ([0, 1, 2, 3], [4, 5, 6, 7])


def test_all_pages_of_a_list_are_of_the_moment_of_the_first() -> None:
    first = page_after(ranked({0: 0.0, 1: 1.0}), "", 1, token_moment("", 1_000))

    assert token_moment(first.next_token, 2_000) == 1_000


@pytest.mark.parametrize(
    "token", ["-1", "x", "1_0_1.0", "1_2_1.0_1", "1_0_nan_1", "1_0_1.0_x", "1_0_1.0_" + "9" * 30]
)
def test_an_unknown_place_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgumentError, match="page_token"):
        page_after(ranked({0: 0.0}), token, 1)
