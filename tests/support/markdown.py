"""Code blocks of Markdown pages, and their execution."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<text>.*?)^(?P=indent)```",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class CodeBlock:
    """One fenced block of code."""

    language: str
    title: str
    """Name of the file that the block shows; empty: it shows none."""
    text: str
    line: int

    def commands(self) -> Iterator[str]:
        """Yield the command lines of a console session, or of a shell script."""
        for line in self.text.replace("\\\n", " ").splitlines():
            if self.language == "console" and line.startswith("$ "):
                yield line[2:]
            elif self.language in {"bash", "sh"} and line and not line.startswith("#"):
                yield line


def code_blocks(page: Path) -> list[CodeBlock]:
    """Return the code blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [
        CodeBlock(
            match["language"],
            match["title"] or "",
            match["text"],
            text.count("\n", 0, match.start()) + 1,
        )
        for match in _BLOCK.finditer(text)
    ]


def documentation_pages() -> list[Path]:
    """Return every Markdown page of the repository that users read."""
    patterns = ("*.md", "docs/**/*.md", "services/*/README.md", "examples/**/README.md")
    return sorted(page for pattern in patterns for page in ROOT.glob(pattern))


def words_of(command: str) -> list[str]:
    """Return the words of a command line without its comment."""
    return shlex.split(command, comments=True)
