"""Search of a text for lines, piece by piece."""

import pytest

from svc_manager.domain.line_search import LINE_BYTES, FoundLine, LineSearch

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

    [line] = search.found
    # The end of the first part is searched with the second: "x" and one more character.
    assert (line.offset, len(line.text)) == (LINE_BYTES - 8, 400)


@pytest.mark.parametrize("word", ["needle", "nädel", "ßß"])
@pytest.mark.parametrize("cut", range(1, 8))
def test_a_word_across_the_parts_of_an_endless_line_is_found_once(word: str, cut: int) -> None:
    search = LineSearch(word, 5)
    text = b"-" * (LINE_BYTES - cut) + word.upper().encode() + b"-" * 3 * LINE_BYTES

    for start in range(0, len(text), LINE_BYTES):
        search.feed(text[start : start + LINE_BYTES], start)
    search.finish()

    [line] = search.found
    assert line.offset <= LINE_BYTES - cut
    assert search.searched_to == len(text)


def test_a_part_of_a_line_begins_with_a_whole_character() -> None:
    search = LineSearch("end", 5)

    search.feed("€".encode() * LINE_BYTES, 1)
    search.feed(b"end\n", 1 + 3 * LINE_BYTES)

    [line] = search.found
    assert line.text.strip("€") == "end"
    assert search.searched_to == 1 + 3 * LINE_BYTES + 4


def test_a_search_that_ends_within_a_line_goes_on_where_a_word_may_begin() -> None:
    first, second = LineSearch("needle", 5), LineSearch("needle", 5)
    text = b"-" * (LINE_BYTES - 3) + b"needle\n"

    first.feed(text[:LINE_BYTES], 0)
    second.feed(text[first.searched_to :], first.searched_to)

    assert first.found == []
    assert [line.offset for line in second.found] == [first.searched_to]


def test_carriage_returns_end_the_lines_of_a_text_without_line_feeds() -> None:
    search = LineSearch("at 9", 9)
    text = b"".join(b"\rat %06d" % number for number in range(20_000)) + b"\rat 9"

    search.feed(text, 0)
    search.finish()

    assert search.found == [FoundLine(len(text) - 4, "at 9")]


@pytest.mark.parametrize(("after", "offset"), [(b"n", LINE_BYTES + 1), (b"", None)])
def test_a_carriage_return_ends_a_line_unless_a_line_feed_may_follow(
    after: bytes, offset: int | None
) -> None:
    search = LineSearch("needle", 9)

    search.feed(b"-" * LINE_BYTES + b"\r" + after, 0)
    ended_at = search.searched_to
    search.feed(b"needle"[len(after) :] + b"\n", LINE_BYTES + 1 + len(after))

    [line] = search.found
    assert line.text.lstrip("-\r") == "needle"
    if offset is not None:
        assert (line.offset, ended_at) == (offset, offset)


def test_a_full_search_does_not_go_past_its_last_line() -> None:
    search = LineSearch("a", 1)

    search.feed(b"a\n" + b"-" * LINE_BYTES, 0)

    assert (search.full, search.searched_to) == (True, 2)


def test_a_gap_ends_a_line() -> None:
    search = LineSearch("ab", 5)

    search.feed(b"a", 0)
    search.feed(b"b\n", 9)

    assert search.found == []


def test_search_of_nothing_ends_at_the_begin() -> None:
    search = LineSearch("needle", 1)

    search.finish()

    assert (search.found, search.searched_to) == ([], 0)


def test_bytes_that_are_no_text_hide_no_line() -> None:
    search = LineSearch("needle", 1)

    search.feed(b"\xff needle \xc3\n", 0)

    assert search.found == [FoundLine(0, "\ufffd needle \ufffd")]


@pytest.mark.parametrize(
    ("text", "searched_to"),
    [
        (b"a\n" * LINE_BYTES + b"b\rc", 2 * LINE_BYTES),
        (b"b\r" + b"c" * (LINE_BYTES - 2), 2),
        (b"b\r" + b"c" * (LINE_BYTES - 3), 0),
    ],
    ids=["after line feeds", "large", "small"],
)
def test_carriage_return_ends_a_line_only_where_no_line_feed_is_near(
    text: bytes, searched_to: int
) -> None:
    search = LineSearch("needle", 1)

    search.feed(text, 0)

    assert search.searched_to == searched_to


def test_carriage_return_at_the_end_of_a_piece_is_searched_with_the_next_one() -> None:
    search = LineSearch("needle", 1)

    search.feed(b"-" * LINE_BYTES + b"\r", 0)

    assert search.searched_to < LINE_BYTES
