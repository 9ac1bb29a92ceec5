"""Recognition of trial commands that a warm interpreter may run in place of the shell."""

import re
import shlex
from dataclasses import dataclass
from typing import Final

_INTERPRETER = re.compile(r"(?:[A-Za-z0-9_./+-]*/)?python(?:3(?:\.\d+)?)?\Z")
_MEANS_SOMETHING_TO_A_SHELL: Final = frozenset("|&;<>()$`\\*?[]{}!~#%\n\r")
"""Without any of these, in quotes or not, the shell splits words as shlex does."""


@dataclass(frozen=True, slots=True)
class PythonCommand:
    """Trial command that only runs a Python script or module, so that it can start warm."""

    interpreter: str
    """As written: a name to look up on the PATH, or a path."""
    unbuffered: bool
    """`-u` was given."""
    arguments: tuple[str, ...]
    """Script or `-m` and module, and the arguments."""


def parse_python_command(command: str) -> PythonCommand | None:
    """Parse `python[3] [-u] (script.py | -m module) arguments`; None: bash must run the line.

    A line with anything that a shell might expand, redirect, chain or assign is not parsed, even
    where quotes would make it harmless: bash then runs it, which is always right.
    """
    text = command.strip()
    if not _MEANS_SOMETHING_TO_A_SHELL.isdisjoint(text):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None  # an unclosed quote: bash reports it better
    if len(words) < 2 or not _INTERPRETER.match(words[0]):  # noqa: PLR2004 - interpreter, script
        return None
    unbuffered = words[1] == "-u"
    arguments = words[2:] if unbuffered else words[1:]
    if not arguments or not (_is_script(arguments[0]) or _is_module(arguments[:2])):
        return None
    return PythonCommand(words[0], unbuffered, tuple(arguments))


def _is_script(word: str) -> bool:
    return word.endswith(".py") and not word.startswith("-")


def _is_module(words: list[str]) -> bool:
    return words[0] == "-m" and all(part.isidentifier() for part in words[-1].split("."))


_LOAD_TIME_PREFIXES: Final = (
    "LD_",
    "PYTHON",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "MALLOC_",
    "KMP_",
    "GOMP_",
    "GOTO_",
    "LANG",
    "LC_",
)


def load_time_variables(environment: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return as sorted pairs the variables (`LD_*`, `PYTHON*`, ...) that act as a program starts.

    Setting them after a fork is too late, so each set of values needs its own interpreter.
    """
    return tuple(
        sorted(item for item in environment.items() if item[0].startswith(_LOAD_TIME_PREFIXES))
    )
