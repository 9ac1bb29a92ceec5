"""HTTP ranges of a log: parser of the header `Range`, without I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_RANGE: Final = re.compile(r"bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))")


class RangeError(ValueError):
    """Error: the range begins after the end of the content."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Range of bytes of a content, the end excluded."""

    start: int
    end: int
    total: int
    """Length of the whole content."""

    @property
    def content_range(self) -> str:
        """Value of the header `Content-Range`."""
        return f"bytes {self.start}-{self.end - 1}/{self.total}"


def range_of(header: str, total: int) -> ByteRange | None:
    """Parse a `Range` header; return None if malformed; raise if it selects no byte.

    A header that is not understood is ignored, as HTTP has it (RFC 9110, section 14.2).

    Args:
        header: `bytes=0-99`, `bytes=100-`, or `bytes=-100` for the last bytes.
        total: length of the content in bytes.

    Raises:
        RangeError: no byte of the content is in the range.
    """
    found = _RANGE.fullmatch(header.strip())
    if found is None:
        return None
    first, last, count = found.groups()
    if count is not None:
        start, end = max(0, total - int(count)), total
    else:
        start = int(first)
        end = min(total, int(last) + 1) if last else total
        if last and int(last) < start:
            return None
    if start >= end:
        raise RangeError(f"the content has {total} bytes")
    return ByteRange(start, end, total)
