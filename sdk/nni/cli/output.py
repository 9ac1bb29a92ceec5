"""Output of `nnictl`: messages, tables and JSON; not wrapped, coloured on terminals only.

Output holds names and messages from outside, so no other module of `nnictl` writes text to the
terminal: `echo` and `complain` show control characters instead of sending them.

Messages start with `INFO:`, `WARNING:` or `ERROR:`. Data and INFO go to stdout, warnings and errors
to stderr; with `--json` stdout holds the JSON and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from nni.experiment.errors import ExperimentError
from nni.experiment.printable_text import printable, printable_json

RULE: Final = "-" * 71
"""Line that sets a block apart."""
_INDENT: Final = 2
_DELETE: Final = "\x7f"
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as a shell reports the signal."""


class OutputError(ExperimentError):
    """Error: output of a command could not be written."""


class Messages:
    """Printer of a command's messages that can save them in the experiment's log files.

    Args:
        quiet: whether lines to stdout are only saved, as with `--json`.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._out: list[str] = []
        self._err: list[str] = []

    def line(self, text: str) -> None:
        """Write a line to stdout unless quiet, and keep it for `save`."""
        self._out.append(text)
        if not self._quiet:
            echo(text)

    def info(self, text: str) -> None:
        """Print an INFO message to stdout unless quiet, and keep it for `save`."""
        self.line(f"INFO: {text}")

    def warning(self, text: str) -> None:
        """Print a WARNING, for legal input that is probably not meant, to stderr; keep it."""
        self._complain(f"WARNING: {text}")

    def error(self, text: str) -> None:
        """Print an ERROR message to stderr, and keep it for `save`."""
        self._complain(f"ERROR: {text}")

    def _complain(self, text: str) -> None:
        self._err.append(text)
        complain(text)

    def save(self, directory: Path) -> None:
        """Move what was written so far into `nnictl_stdout.log` and `nnictl_stderr.log`."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, lines in (("nnictl_stdout.log", self._out), ("nnictl_stderr.log", self._err)):
            with (directory / name).open("a", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
            lines.clear()


def echo(text: str, *, end: str = "\n") -> None:
    """Write data to stdout; control characters in it are shown as escapes."""
    _write(printable(text) + end)


def write_stream(text: str) -> None:
    """Write a program's output, which is printable already, to stdout."""
    _write(text)


def _write(text: str) -> None:
    """Write text to stdout at once, characters that it lacks escaped; OutputError without room.

    Raises:
        BrokenPipeError: the reader has gone.
        OutputError: there is no room for it.
    """
    try:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # the terminal's encoding has not all of the characters
            sys.stdout.write(_NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = f"the output cannot be written: {error.strerror}; redirect it to another file"
        raise OutputError(reason) from error


def discard_output() -> None:
    """Redirect stdout to `/dev/null`, so that the interpreter's last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        target = os.open(os.devnull, os.O_WRONLY)
        os.dup2(target, sys.stdout.fileno())
        os.close(target)


def complain(text: str) -> None:
    """Write a line to stderr; control characters in it are shown as escapes."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def json_text(value: object, indent: int | None = _INDENT) -> str:
    """Return ``value`` as JSON that every parser reads: NaN and infinities become texts."""
    text = json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    if text.isascii() and _DELETE not in text:  # the encoder has escaped all other controls
        return text
    return printable_json(text)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def write_json(value: object) -> None:
    """Write ``value`` to stdout as indented JSON; NaN and infinities become texts."""
    _write(json_text(value) + "\n")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows in aligned columns under their headers, one line each, however wide."""
    cells = [list(headers), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return printable(" ".join(str(value).split()))


def local_time(milliseconds: int | str | None) -> str:
    """Return an instant as local `YYYY-MM-DD HH:MM:SS`; None as `N/A`, texts as they are."""
    if milliseconds is None:
        return "N/A"
    if isinstance(milliseconds, str):
        return milliseconds
    instant = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
    return instant.strftime("%Y-%m-%d %H:%M:%S")
