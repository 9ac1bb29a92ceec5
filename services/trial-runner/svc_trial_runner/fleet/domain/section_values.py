"""Rules of option names and values that the sections of several platforms share."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from svc_trial_runner.fleet.domain.agents import PlatformProblem

POLL_S: Final = 10.0
"""Interval of polls of a cluster that notifies of nothing, unless the section gives one."""
LEAST_POLL_S: Final = 0.05
_ENDPOINT: Final = re.compile(
    r"(https://[A-Za-z0-9.-]+|http://(localhost|127\.0\.0\.1))(:\d{1,5})?\Z"
)


_LARGEST: Final = 1e15
"""Larger numbers are mistakes."""
_SIZE: Final = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]b)?\Z", re.IGNORECASE)
_MEBIBYTES: Final = {"kb": 1 / 1024, "mb": 1.0, "gb": 1024.0, "tb": 1024.0 * 1024}


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


def gpu_numbers(value: object) -> tuple[int, ...]:
    """Return the GPUs that a number, a list or a text such as `0,1` names; raise for others.

    Raises:
        ValueError: a part is no whole number >= 0.
    """
    several = value if isinstance(value, list | tuple) else [value]
    parts = [
        part for one in several for part in (one.split(",") if isinstance(one, str) else [one])
    ]
    return tuple(map(_gpu_number, parts))


def _gpu_number(part: object) -> int:
    if isinstance(part, str) and part.strip().isdecimal():
        return int(part)
    if isinstance(part, float) and part.is_integer():
        part = int(part)
    if isinstance(part, int) and not isinstance(part, bool) and part >= 0:
        return part
    raise ValueError(f"a GPU must be an integer >= 0, got {part!r}")


def finite_number(value: object) -> float | None:
    """Return an option's value as a number; None: it is none, or implausibly large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _LARGEST else None  # NaN is not, either


def whole_number(value: object, least: int = 0) -> int | None:
    """Return an option's value as a whole number, also from `2.0`; None: it is none.

    Args:
        value: of the option.
        least: smaller numbers are none.
    """
    number = finite_number(value)
    return int(number) if number is not None and least <= number == int(number) else None


def mebibytes(size: object) -> float | None:
    """Return a size such as `8gb`, units in powers of 1024, in MiB; None: it is not one above 0.

    Args:
        size: text, or a number of megabytes.
    """
    number = finite_number(size)
    text = f"{number:.15g}" if number is not None else size
    match = _SIZE.match(text) if isinstance(text, str) else None
    if match is None:
        return None
    return float(match[1]) * _MEBIBYTES[(match[2] or "mb").lower()] or None


def poll_problems(interval_s: float) -> list[PlatformProblem]:
    """Return the broken rule of `pollIntervalSeconds`, if it is too short."""
    if interval_s >= LEAST_POLL_S:
        return []
    rule = f"must be >= {LEAST_POLL_S:g}"
    return [PlatformProblem("pollIntervalSeconds", rule, f"{interval_s:g}")]


def section_text(section: Mapping[str, object], name: str) -> str:
    """Return a text of a section without white space around it; empty: it has none of that name."""
    value = section.get(name)
    return value.strip() if isinstance(value, str) else ""


def missing_problems(section: Mapping[str, object], names: Iterable[str]) -> list[PlatformProblem]:
    """Return a problem for each of the named text options that a section lacks."""
    return [
        PlatformProblem(name, "must be given") for name in names if not section_text(section, name)
    ]


def is_endpoint(address: str) -> bool:
    """Return whether an address is `https://host` or `https://host:port`; `http` is for loopback.

    Credentials are sent to it, which must not cross a network in clear text.
    """
    return _ENDPOINT.match(address) is not None
