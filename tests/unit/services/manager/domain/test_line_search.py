"""Search of a text for lines, piece by piece."""

import pytest

from svc_manager.domain.line_search import LINE_BYTES, SHOWN_CHARACTERS, FoundLine, LineSearch

TEXT = "alpha\nÄrger and Beta\r\n\nno\nbeta again".encode()


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_pieces_of_any_size_give_the_same_lines(size: int) -> None:
    search = LineSearch("BETA", 10)

    for start in range(0, len(TEXT), size):
        search.feed(TEXT[start : start + size], start)
    search.finish()

    assert search.found == [FoundLine(6, "Ärger and Beta"), FoundLine(27, "beta again")]
    assert search.searched_to == len(TEXT)
    assert not search.full


def test_a_full_search_ends_behind_its_last_line() -> None:
    search = LineSearch("a", 2)

    search.feed(b"a\na\na\n", 100)

    assert [line.offset for line in search.found] == [100, 102]
    assert (search.full, search.searched_to) == (True, 104)


def test_a_text_without_line_ends_is_searched_in_parts_and_shown_by_its_begin() -> None:
    search = LineSearch("x", 5)

    search.feed(b"-" * LINE_BYTES, 0)
    search.feed(b"x" * LINE_BYTES, LINE_BYTES)

    assert [(line.offset, len(line.text)) for line in search.found] == [
        (LINE_BYTES, SHOWN_CHARACTERS)
    ]


def test_a_gap_ends_a_line() -> None:
    search = LineSearch("ab", 5)

    search.feed(b"a", 0)
    search.feed(b"b\n", 9)

    assert search.found == []
