"""How much of a trial's output is kept."""

from typing import Final

MARKER: Final = b"\n[nni] output limit of %d bytes reached: the rest was dropped\n"


class OutputLimit:
    """Cuts one stream of output at a limit and says so once.

    What comes beyond the limit is counted, so that the trial can go on writing.

    Args:
        limit_bytes: kept at most, not counting the marker; >= 0.
    """

    __slots__ = ("_left_bytes", "_limit_bytes", "dropped_bytes")

    def __init__(self, limit_bytes: int) -> None:
        if limit_bytes < 0:
            raise ValueError(f"limit_bytes must be >= 0, got {limit_bytes}")
        self._limit_bytes = limit_bytes
        self._left_bytes = limit_bytes
        self.dropped_bytes = 0

    def take(self, chunk: bytes) -> bytes:
        """Return what is kept of the next `chunk`; the first cut one ends with the marker."""
        size = len(chunk)
        if size <= self._left_bytes:
            self._left_bytes -= size
            return chunk
        kept = chunk[: self._left_bytes]
        first_cut = self.dropped_bytes == 0
        self.dropped_bytes += size - self._left_bytes
        self._left_bytes = 0
        return kept + MARKER % self._limit_bytes if first_cut else kept


class Tail:
    """Remembers the end of a stream.

    Args:
        limit_bytes: remembered at most.
    """

    __slots__ = ("_chunks", "_limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._chunks = b""

    def add(self, chunk: bytes) -> None:
        """Take the next chunk in."""
        self._chunks = (self._chunks + chunk)[-self._limit_bytes :]

    def text(self) -> str:
        """Return the end of the stream as text, whole lines if it has more than one."""
        data = self._chunks
        if len(data) == self._limit_bytes and b"\n" in data[:-1]:
            data = data[data.index(b"\n") + 1 :]
        return data.decode(errors="replace").strip("\n")
