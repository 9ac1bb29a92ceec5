"""Search of a text for lines with a word, piece by piece."""

from dataclasses import dataclass
from typing import Final

LINE_BYTES: Final = 64 * 1024
"""A line of at least this size is searched in parts: a text without line ends fits no memory."""
SHOWN_CHARACTERS: Final = 400
"""Characters of a found line."""
_CHARACTER_BYTES: Final = 4
"""Most bytes of a character in UTF-8."""
_CONTINUES: Final = frozenset(range(0x80, 0xC0))
"""Bytes that continue a character in UTF-8."""


@dataclass(frozen=True, slots=True)
class FoundLine:
    """Line with the searched word: byte offset, and the beginning of its text."""

    offset: int
    """Of its first byte."""
    text: str
    """Its begin, at most `SHOWN_CHARACTERS`."""


class LineSearch:
    """Case-insensitive search for a word in lines of a text fed in pieces, up to a limit of finds.

    Args:
        word: text to find, in upper or lower case; at least one character.
        limit: most lines to find; the search is full then.
    """

    def __init__(self, word: str, limit: int) -> None:
        self._word = word.casefold()
        # A character of the text becomes one or more of the word; the last may be incomplete.
        self._overlap_bytes = _CHARACTER_BYTES * (len(self._word) + 1)
        self._limit = limit
        self.found: list[FoundLine] = []
        self.searched_to = 0
        """Offset behind the last line that was searched: a later search goes on there."""
        self._rest = b""
        self._rest_at = 0

    @property
    def full(self) -> bool:
        """Whether the limit of found lines is reached."""
        return len(self.found) >= self._limit

    def feed(self, data: bytes, offset: int) -> None:
        """Search the complete lines of the buffered rest and the next piece; add them to ``found``.

        Args:
            data: the piece.
            offset: of its first byte; a gap before it ends a line.
        """
        if self._rest and offset != self._rest_at + len(self._rest):
            self.finish()
        if not self._rest:
            self._rest_at = offset
        data, start = self._rest + data, self._rest_at
        end = data.rfind(b"\n") + 1
        if len(data) - end >= LINE_BYTES:  # so progress bars end lines
            end = max(end, data.rfind(b"\r", 0, len(data) - 1) + 1)
        self._rest, self._rest_at = data[end:], start + end
        self._search(data[:end], start)
        if len(self._rest) >= LINE_BYTES and not self.full:
            self._search_part()

    def _search_part(self) -> None:
        """Search the buffered part of an overlong line; keep an end in which a match may begin."""
        part, start = self._rest, self._rest_at
        end = _character_start(part, len(part) - 1)
        self._search(part[:end], start)
        overlap = _character_start(part, max(0, len(part) - self._overlap_bytes))
        if not self._in(part[overlap:end]):  # else the part after it would be found by it, too
            end = overlap
        self._rest, self._rest_at = part[end:], start + end
        self.searched_to = self._rest_at

    def finish(self) -> None:
        """Search the buffered last line, which has no line end; empty the buffer."""
        rest, self._rest = self._rest, b""
        self._search(rest, self._rest_at)

    def _search(self, block: bytes, offset: int) -> None:
        if self.full:
            return
        if self._in(block):
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

    def _in(self, block: bytes) -> bool:
        return self._word in block.decode("utf-8", "replace").casefold()


def _character_start(data: bytes, at: int) -> int:
    """Return the offset of the first byte of the character to which the byte at ``at`` belongs."""
    start = at
    while start > 0 and at - start < _CHARACTER_BYTES and data[start] in _CONTINUES:
        start -= 1
    return start
