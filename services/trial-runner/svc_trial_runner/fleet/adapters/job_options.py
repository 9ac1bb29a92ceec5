"""Options that the sections of platforms share whose agents are jobs in containers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.section_values import (
    POLL_S,
    finite_number,
    poll_problems,
    section_text,
    text_lines,
)

_PYTHON: Final = "python3"
_MOST_POLL_S: Final = 1e6


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Options of a platform's agents: interpreter, PATH, setup lines, interval of polls, reuse."""

    python: str = _PYTHON
    """Interpreter of the agent in the image."""
    python_path: str = ""
    """Put first on the PATH of trials; empty: nothing."""
    setup_lines: tuple[str, ...] = ()
    """Lines of bash that run before the trials."""
    poll_interval_s: float = POLL_S
    """Time between two looks at the jobs."""
    reuse_mode: bool = True
    """False: an agent ends after one trial."""


def parse_job_options(section: Mapping[str, object]) -> JobOptions:
    """Return the options of a section; a value of a wrong type counts as not given.

    `job_option_problems` reports such values.
    """
    interval_s = _interval(section.get("pollIntervalSeconds"))
    return JobOptions(
        python=section_text(section, "python") or _PYTHON,
        python_path=section_text(section, "pythonPath"),
        setup_lines=text_lines(section.get("setupLines")) or (),
        poll_interval_s=POLL_S if interval_s is None else interval_s,
        reuse_mode=section.get("reuseMode") is not False,
    )


def job_option_problems(section: Mapping[str, object]) -> list[PlatformProblem]:
    """Return which of these options have a wrong type, or are out of range."""
    problems = [
        PlatformProblem(name, f"must be {rule}", repr(section[name])[:80])
        for name, (read, rule) in _READERS.items()
        if section.get(name) is not None and read(section[name]) is None
    ]
    return [*problems, *poll_problems(parse_job_options(section).poll_interval_s)]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _interval(value: object) -> float | None:
    interval_s = finite_number(value)
    return interval_s if interval_s is not None and abs(interval_s) <= _MOST_POLL_S else None


_READERS: Final[Mapping[str, tuple[Callable[[object], object], str]]] = {
    "python": (_text, "text"),
    "pythonPath": (_text, "text"),
    "setupLines": (text_lines, "a list of texts"),
    "pollIntervalSeconds": (_interval, "a number of seconds"),
    "reuseMode": (_flag, "true or false"),
}
"""Function that returns None for a value of a wrong type, and the rule, by name of the option."""
