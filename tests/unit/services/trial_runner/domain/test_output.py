import pytest

from svc_trial_runner.domain.output import END_MARKER, MARKER, OutputLimit, Tail, tail_bytes


def test_output_below_the_limit_is_kept_whole() -> None:
    limit = OutputLimit(10)

    assert limit.take(b"hello") + limit.take(b"world") == b"helloworld"
    assert limit.dropped_bytes == 0


def test_output_beyond_the_limit_is_cut_and_marked_once() -> None:
    limit = OutputLimit(7)

    kept = [limit.take(b"hello"), limit.take(b"world"), limit.take(b"again")]

    assert kept == [b"hello", b"wo" + MARKER % 7, b""]
    assert limit.dropped_bytes == 8


def test_beginning_and_end_of_a_long_stream_are_kept() -> None:
    limit = OutputLimit(10, 4)

    kept = [limit.take(b"abcd"), limit.take(b"efgh"), limit.take(b"ijk"), limit.take(b"lmnopqr")]

    assert kept == [b"abcd", b"ef", MARKER % 10, b""]
    assert limit.dropped_bytes == 8
    assert limit.end() == END_MARKER % (8, 4) + b"opqr"
    assert limit.end() == b""


def test_a_stream_that_just_fits_is_kept_whole() -> None:
    limit = OutputLimit(10, 4)

    assert limit.take(b"abcdefgh") + limit.take(b"ij") + limit.end() == b"abcdefghij"
    assert limit.dropped_bytes == 0


def test_the_kept_end_is_an_eighth_of_the_limit_but_never_large() -> None:
    assert [tail_bytes(limit) for limit in (7, 8, 1_000_000)] == [0, 1, 125_000]
    assert tail_bytes(1 << 40) == 1 << 20
    with pytest.raises(ValueError, match="tail_bytes must be from 0 to limit_bytes, got 8"):
        OutputLimit(7, 8)


def test_nothing_may_be_kept() -> None:
    assert OutputLimit(0).take(b"x") == MARKER % 0


def test_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="limit_bytes must be >= 0, got -1"):
        OutputLimit(-1)


def test_tail_is_the_whole_of_a_short_stream() -> None:
    tail = Tail(100)
    tail.add(b"one\n")
    tail.add(b"two\n")

    assert tail.text() == "one\ntwo"


def test_tail_of_a_long_stream_begins_with_a_whole_line() -> None:
    tail = Tail(10)
    tail.add(b"first line\nsecond\nlast\n")

    assert tail.text() == "last"


def test_short_last_line_is_kept_after_a_cut_one() -> None:
    tail = Tail(4)
    tail.add(b"first\nx")

    assert tail.text() == "x"


def test_tail_of_one_endless_line_is_its_end() -> None:
    tail = Tail(4)
    tail.add(b"abcdefgh")

    assert tail.text() == "efgh"


def test_negative_end_is_refused() -> None:
    with pytest.raises(ValueError, match="tail_bytes must be from 0 to limit_bytes, got -1"):
        OutputLimit(7, -1)


def test_tail_that_begins_within_a_character_is_text() -> None:
    tail = Tail(3)
    tail.add("€uro".encode()[:-2])

    assert tail.text() == "\ufffd\ufffdu"
