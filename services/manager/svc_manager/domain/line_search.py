"""Search of a text for lines with a word, piece by piece."""

from dataclasses import dataclass
from typing import Final

LINE_BYTES: Final = 64 * 1024
"""A longer line is searched in parts of this size: a text without line ends fits no memory."""
SHOWN_CHARACTERS: Final = 400
"""Characters of a found line."""


@dataclass(frozen=True, slots=True)
class FoundLine:
    """Line that contains the word."""

    offset: int
    """Of its first byte."""
    text: str
    """Its begin, at most `SHOWN_CHARACTERS`."""


class LineSearch:
    """State of a search for a word over the pieces of a text in order.

    Args:
        word: text to find, in upper or lower case; at least one character.
        limit: most lines to find; the search is full then.
    """

    def __init__(self, word: str, limit: int) -> None:
        self._word = word.casefold()
        self._limit = limit
        self.found: list[FoundLine] = []
        self.searched_to = 0
        """Offset behind the last line that was searched: a later search goes on there."""
        self._rest = b""
        self._rest_at = 0

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return len(self.found) >= self._limit

    def feed(self, data: bytes, offset: int) -> None:
        """Search the complete lines of the next piece, with the rest of the pieces before.

        Args:
            data: the piece.
            offset: of its first byte; a gap before it ends a line.
        """
        if self._rest and offset != self._rest_at + len(self._rest):
            self.finish()
        if not self._rest:
            self._rest_at = offset
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        if len(data) - end >= LINE_BYTES:
            end = len(data)
        self._rest, start = data[end:], self._rest_at
        self._rest_at += end
        self._search(data[:end], start)

    def finish(self) -> None:
        """Search the last line, which has no end."""
        rest, self._rest = self._rest, b""
        self._search(rest, self._rest_at)

    def _search(self, block: bytes, offset: int) -> None:
        if self.full:
            return
        if self._word in block.decode("utf-8", "replace").casefold():
            for line in block.splitlines(keepends=True):
                text = line.decode("utf-8", "replace")
                if self._word in text.casefold():
                    shown = text.rstrip("\r\n")[:SHOWN_CHARACTERS]
                    self.found.append(FoundLine(offset, shown))
                offset += len(line)
                self.searched_to = offset
                if len(self.found) >= self._limit:
                    return
        else:
            self.searched_to = offset + len(block)
