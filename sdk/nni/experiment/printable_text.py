"""Text from outside made safe for terminals: control characters are shown, not executed.

Names, messages and logs may hold any character. An escape sequence in one of them could move the
cursor, rewrite earlier lines, or write to the clipboard; a bidirectional override could reorder
what is read.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

_CONTROLS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""C0 without tab and newline, DEL, and C1, where 8-bit terminals have their escape codes."""
_REORDERING: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE: Final = re.compile(f"[{_CONTROLS}{_REORDERING}]")
_UNSAFE_IN_STREAM: Final = re.compile(
    rf"(?P<kept>\r|\x08|\x1b\[[0-9;]{{0,64}}m)|[{_CONTROLS}{_REORDERING}]"
)
_BEGUN: Final = re.compile(r"\x1b(?:\[[0-9;]{0,64})?\Z")
"""End of a piece that may be the beginning of a colour."""
_BYTE: Final = 0xFF


def printable(text: str) -> str:
    r"""Return ``text`` with control characters replaced by their escapes, like `\x1b`."""
    return _UNSAFE.sub(_escape, text)


def printable_stream(text: str) -> str:
    """Return a piece of a program's output for a terminal: as `printable`, but coloured.

    Colours, carriage return and backspace stay, since progress bars are made of them.
    """
    return _UNSAFE_IN_STREAM.sub(lambda found: found["kept"] or _escape(found), text)


class PrintableStream:
    """Decoder of a program's output, which comes in pieces, for a terminal.

    A character or colour that a piece ends in the middle of is held back until the next piece.

    Examples:
        >>> stream = PrintableStream()
        >>> stream.add("é".encode()[:1]), stream.add("é".encode()[1:]), stream.end()
        ('', 'é', '')
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def add(self, piece: bytes) -> str:
        """Return what can be printed after another piece, as `printable_stream`."""
        text = self._held + self._decoder.decode(piece)
        begun = _BEGUN.search(text)
        end = len(text) if begun is None else begun.start()
        self._held = text[end:]
        return printable_stream(text[:end])

    def end(self) -> str:
        """Return what was held back, at the end of the output."""
        text, self._held = self._held + self._decoder.decode(b"", final=True), ""
        return printable_stream(text)


def printable_json(text: str) -> str:
    """Return JSON text with the same meaning and without control characters in its strings."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= _BYTE else f"\\u{code:04x}"
