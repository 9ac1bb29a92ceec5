"""Limits on the output that is kept of a trial."""

from typing import Final

STDOUT: Final = "stdout"
STDERR: Final = "stderr"
TRIAL_LOG: Final = "trial.log"
"""Second name of `stdout` in the folder of a trial."""

MARKER: Final = b"\n[nni] output limit of %d bytes reached: the rest was dropped\n"


class OutputLimit:
    """Filter that passes a stream's first bytes up to a limit, then a marker once.

    Output beyond the limit is counted and dropped, so that the trial can go on writing.

    Args:
        limit_bytes: bytes kept at most, without the marker; >= 0.
    """

    __slots__ = ("_left_bytes", "_limit_bytes", "dropped_bytes")

    def __init__(self, limit_bytes: int) -> None:
        if limit_bytes < 0:
            raise ValueError(f"limit_bytes must be >= 0, got {limit_bytes}")
        self._limit_bytes = limit_bytes
        self._left_bytes = limit_bytes
        self.dropped_bytes = 0

    def take(self, chunk: bytes) -> bytes:
        """Return what to keep of the next chunk under the limit; the first cut ends in a marker."""
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
