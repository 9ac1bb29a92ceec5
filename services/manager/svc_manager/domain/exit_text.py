"""How the end of a trial's command is put into words, and read from them again."""

import re
from dataclasses import dataclass
from typing import Final

_SIGNAL: Final = re.compile(r"signal (\d+)(?:: (.*))?\Z", re.DOTALL)
_EXIT_CODE: Final = re.compile(r"exit code (\d+)(?:: (.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How the command of a trial ended."""

    exit_code: int | None
    """None: killed by ``signal``."""
    signal: int
    """0: none killed it."""
    stderr_tail: str
    """Its last lines; may be empty."""


def command_end_text(end: CommandEnd) -> str:
    """Return the reason of a failure; `read_command_end` gives the end back."""
    how = f"signal {end.signal}" if end.exit_code is None else f"exit code {end.exit_code}"
    return f"{how}: {end.stderr_tail}" if end.stderr_tail else how


def read_command_end(reason: str) -> CommandEnd | None:
    """Return what `command_end_text` was given; None: the reason tells of something else."""
    match = _SIGNAL.match(reason)
    if match is not None:
        return CommandEnd(None, int(match[1]), match[2] or "")
    match = _EXIT_CODE.match(reason)
    if match is not None:
        return CommandEnd(int(match[1]), 0, match[2] or "")
    return None
