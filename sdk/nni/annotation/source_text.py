"""Source text of a Python file, with edits that keep all other lines."""

import ast
import io
import tokenize
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Position:
    """Line (from 1) and column (in bytes of UTF-8, from 0) in a source file."""

    line: int
    """Counts from 1."""
    column: int
    """Counts bytes of UTF-8 from 0, as `ast` does."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacement of a span of a file by one line of code; line ends are kept."""

    start: Position
    end: Position
    text: str
    """One line of code. Where it replaces several lines, it can be put in parentheses: it gets as
    many line ends as it replaces, so that the lines behind it keep their numbers."""


def span(node: ast.expr | ast.stmt) -> tuple[Position, Position]:
    """Return the positions of a node's source: its start, and the position just after its end."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Position(node.lineno, node.col_offset), Position(node.end_lineno, node.end_col_offset)


def _lines(text: str) -> list[bytes]:
    """Return the lines that Python's parser sees: `splitlines` would end one at a form feed."""
    return [line.encode() for line in io.StringIO(text, newline="")]


class SourceText:
    """Text of a Python file with its encoding: decoded, parsed, checked, edited and encoded."""

    def __init__(self, text: str, encoding: str = "utf-8") -> None:
        self.text = text
        self._encoding = encoding
        self._lines = _lines(text)

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Decode a file's bytes by the encoding that it declares; SyntaxError: that does not fit.

        Raises:
            SyntaxError: the encoding that the file declares is unknown, or does not fit.
        """
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        try:
            return cls(content.decode(encoding), encoding)
        except UnicodeDecodeError as error:
            raise SyntaxError(f"is not text in {encoding}: {error.reason}") from error

    def encode(self) -> bytes:
        """Return the text as bytes in the file's own encoding.

        Raises:
            UnicodeEncodeError: an edit put in a character that the encoding lacks.
        """
        return self.text.encode(self._encoding)

    def parse(self) -> ast.Module:
        """Parse the text to a syntax tree, without warnings; SyntaxError: it is no Python.

        Raises:
            SyntaxError: it is no Python.
            ValueError: it holds a null byte.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the user's code; a run shows them
            return ast.parse(self.text)

    def check(self) -> None:
        """Raise SyntaxError unless the text compiles as a whole program.

        Raises:
            SyntaxError: it is not.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(self.text, "<converted>", "exec", dont_inherit=True)

    def is_blank(self, line: int) -> bool:
        """Return True if a line holds only white space."""
        return not self._lines[line - 1].strip()

    def edited(self, edits: Iterable[Edit]) -> "SourceText":
        """Return a new text after all edits, which keep line numbers; spans must not overlap."""
        lines = [*self._lines]
        newline = self._newline()

        def order(edit: Edit) -> tuple[int, int, int, int]:
            return edit.start.line, edit.start.column, edit.end.line, edit.end.column

        # From the end, so that the positions of the others stay true; of two at one place, the
        # insertion comes out before the replacement.
        for edit in sorted(edits, key=order, reverse=True):
            first, last = edit.start.line - 1, edit.end.line - 1
            text = edit.text
            if last > first:  # only inside brackets is a line end part of an expression
                text = f"({text}{newline * (last - first)})"
            before = lines[first][: edit.start.column]
            after = lines[last][edit.end.column :]
            lines[first : last + 1] = _lines((before + text.encode() + after).decode())
        return SourceText(b"".join(lines).decode(), self._encoding)

    def _newline(self) -> str:
        first = self._lines[0] if self._lines else b""
        return "\r\n" if first.endswith(b"\r\n") else "\n"
