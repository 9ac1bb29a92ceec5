import pytest

from svc_trial_runner.domain.output import MARKER, OutputLimit, Tail


def test_output_below_the_limit_is_kept_whole() -> None:
    limit = OutputLimit(10)

    assert limit.take(b"hello") + limit.take(b"world") == b"helloworld"
    assert limit.dropped_bytes == 0


def test_output_beyond_the_limit_is_cut_and_marked_once() -> None:
    limit = OutputLimit(7)

    kept = [limit.take(b"hello"), limit.take(b"world"), limit.take(b"again")]

    assert kept == [b"hello", b"wo" + MARKER % 7, b""]
    assert limit.dropped_bytes == 8


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


def test_tail_of_one_endless_line_is_its_end() -> None:
    tail = Tail(4)
    tail.add(b"abcdefgh")

    assert tail.text() == "efgh"
