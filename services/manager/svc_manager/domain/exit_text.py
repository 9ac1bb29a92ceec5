"""Text form of a command's end in failure reasons, and its parser."""

import re
from dataclasses import dataclass
from typing import Final

_SIGNAL: Final = re.compile(r"signal (\d+)(?:: (.*))?\Z", re.DOTALL)
_EXIT_CODE: Final = re.compile(r"exit code (\d+)(?:: (.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """End of a trial's command."""

    exit_code: int | None
    """None: killed by ``signal``."""
    signal: int
    """0: not killed."""
    stderr_tail: str
    """Last lines of stderr; may be empty."""


def command_end_text(end: CommandEnd) -> str:
    """Return the end as a failure reason; `read_command_end` parses it."""
    how = f"signal {end.signal}" if end.exit_code is None else f"exit code {end.exit_code}"
    return f"{how}: {end.stderr_tail}" if end.stderr_tail else how


def read_command_end(reason: str) -> CommandEnd | None:
    """Parse the text of `command_end_text`; None: the reason has another cause."""
    match = _SIGNAL.match(reason)
    if match is not None:
        return CommandEnd(None, int(match[1]), match[2] or "")
    match = _EXIT_CODE.match(reason)
    if match is not None:
        return CommandEnd(int(match[1]), 0, match[2] or "")
    return None
