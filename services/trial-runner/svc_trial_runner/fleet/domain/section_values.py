"""Rules of option names and values that the sections of several platforms share."""

from typing import Final

from svc_trial_runner.fleet.domain.agents import PlatformProblem

POLL_S: Final = 10.0
"""Interval of polls of a cluster that notifies of nothing, unless the section gives one."""
LEAST_POLL_S: Final = 0.05


def camel_case(name: str) -> str:
    """Return the name of a field, such as `poll_interval`, as sections have it: `pollInterval`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def text_lines(value: object) -> tuple[str, ...] | None:
    """Return the lines of a text, or the texts of a list; None: it is neither."""
    if isinstance(value, str):
        return tuple(value.splitlines())
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    return None


def poll_problems(interval_s: float) -> list[PlatformProblem]:
    """Return the broken rule of `pollIntervalSeconds`, if it is too short."""
    if interval_s >= LEAST_POLL_S:
        return []
    rule = f"must be >= {LEAST_POLL_S:g}"
    return [PlatformProblem("pollIntervalSeconds", rule, f"{interval_s:g}")]
