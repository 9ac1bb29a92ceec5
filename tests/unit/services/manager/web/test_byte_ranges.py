"""HTTP ranges of a log."""

from __future__ import annotations

import pytest

from svc_manager.web.byte_ranges import ByteRange, RangeError, range_of


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=2-99", 2, 10),
        ("bytes=2-", 2, 10),
        ("bytes=-4", 6, 10),
        (" bytes=-40 ", 0, 10),
    ],
)
def test_range_is_cut_at_the_content(header: str, start: int, end: int) -> None:
    assert range_of(header, 10) == ByteRange(start, end, 10)


@pytest.mark.parametrize("header", ["", "bytes=", "bytes=5-2", "bytes=0-1,3-4", "bytes=x-", "b=1-"])
def test_header_that_is_not_understood_is_ignored(header: str) -> None:
    assert range_of(header, 10) is None


@pytest.mark.parametrize(("header", "total"), [("bytes=10-", 10), ("bytes=-5", 0), ("bytes=-0", 9)])
def test_range_without_a_byte_is_an_error(header: str, total: int) -> None:
    with pytest.raises(RangeError):
        range_of(header, total)
