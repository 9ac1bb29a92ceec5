"""Limits on the output that is kept of a trial."""

from typing import Final

STDOUT: Final = "stdout"
STDERR: Final = "stderr"
TRIAL_LOG: Final = "trial.log"
"""Second name of `stdout` in the folder of a trial."""

MARKER: Final = b"\n[nni] output limit of %d bytes reached: the rest is dropped, but for its end\n"
END_MARKER: Final = b"\n[nni] %d bytes were dropped here; the last %d bytes follow\n"
_LONGEST_TAIL_BYTES: Final = 1024 * 1024
_TAIL_FRACTION: Final = 8


def tail_bytes(limit_bytes: int) -> int:
    """Return how much of the limit is reserved for a stream's tail: an eighth, at most 1 MiB."""
    return min(_LONGEST_TAIL_BYTES, limit_bytes // _TAIL_FRACTION)


class OutputLimit:
    """Filter that passes the beginning of a stream, and at its end the last bytes.

    What lies between, beyond the limit, is counted and dropped, so that the trial can go on
    writing; lines of ours say so. The last bytes are held in memory until the end.

    Args:
        limit_bytes: bytes kept at most, without our lines; >= 0.
        tail_bytes: those of them that are kept of the end.
    """

    __slots__ = ("_left_bytes", "_limit_bytes", "_tail", "_tail_bytes", "dropped_bytes")

    def __init__(self, limit_bytes: int, tail_bytes: int = 0) -> None:
        if limit_bytes < 0:
            raise ValueError(f"limit_bytes must be >= 0, got {limit_bytes}")
        if not 0 <= tail_bytes <= limit_bytes:
            raise ValueError(f"tail_bytes must be from 0 to limit_bytes, got {tail_bytes}")
        self._limit_bytes = limit_bytes
        self._left_bytes = limit_bytes - tail_bytes
        self._tail_bytes = tail_bytes
        self._tail = bytearray()
        self.dropped_bytes = 0

    def take(self, chunk: bytes) -> bytes:
        """Return the part of the next chunk to write now; buffer the tail; mark the first cut."""
        size = len(chunk)
        if size <= self._left_bytes:
            self._left_bytes -= size
            return chunk
        kept = chunk[: self._left_bytes]
        self._tail += chunk[self._left_bytes :]
        self._left_bytes = 0
        excess = len(self._tail) - self._tail_bytes
        if excess <= 0:
            return kept
        del self._tail[:excess]
        first_cut = self.dropped_bytes == 0
        self.dropped_bytes += excess
        return kept + MARKER % self._limit_bytes if first_cut else kept

    def end(self) -> bytes:
        """Drain the buffered tail; return it, after a marker if bytes were dropped."""
        tail = bytes(self._tail)
        self._tail.clear()
        if not (tail and self.dropped_bytes):
            return tail
        return END_MARKER % (self.dropped_bytes, len(tail)) + tail


class Tail:
    """Buffer of the last bytes of a stream, such as stderr.

    Args:
        limit_bytes: size of the buffer.
    """

    __slots__ = ("_chunks", "_limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._chunks = b""

    def add(self, chunk: bytes) -> None:
        """Add the next chunk."""
        self._chunks = (self._chunks + chunk)[-self._limit_bytes :]

    def text(self) -> str:
        """Return the buffered end of the stream as text, without a cut first line."""
        data = self._chunks
        if len(data) == self._limit_bytes and b"\n" in data[:-1]:
            data = data[data.index(b"\n") + 1 :]
        return data.decode(errors="replace").strip("\n")
