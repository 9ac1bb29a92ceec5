"""Parsers of durations, sizes and GPU lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

_SECONDS_BY_UNIT: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES_BY_UNIT: Final = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_LONGEST_S: Final = 3_650_000 * 86400
"""Messages hold durations of up to 10,000 years."""
_DURATION = re.compile(r"^(\d+(?:\.\d+)?)\s*([smhd])$")
_SLURM_TIME: Final = re.compile(r"\d+(?:\.\d+)?\s*[smhd]|\d+-\d+(?::\d+){0,2}|\d+(?::\d+){0,2}")
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([kmgt]b)$", re.IGNORECASE)


def duration_seconds(text: str) -> float:
    """Return the seconds of a duration such as `10m` or `0.5h`; ValueError if it is malformed.

    Raises:
        ValueError: it is no positive number followed by one of the units s, m, h, d, or is longer
            than 3650000d.
    """
    match = _DURATION.match(text)
    if match is None:
        raise ValueError("must be a number followed by s, m, h or d, such as 10m or 0.5h")
    seconds = float(match[1]) * _SECONDS_BY_UNIT[match[2]]
    if seconds <= 0:
        raise ValueError("must be longer than zero")
    if seconds > _LONGEST_S:
        raise ValueError("must be at most 3650000d")
    return seconds


def duration_text(duration: timedelta) -> str:
    """Return a duration as configuration text in seconds, such as `90s`."""
    return f"{duration.total_seconds():.15g}s"


def is_slurm_time(text: str) -> bool:
    """Return whether a text is a duration, or a time longer than zero in one of Slurm's forms.

    Args:
        text: such as `4h`, `90`, `1:30:00` or `1-12`.
    """
    given = text.strip()
    return _SLURM_TIME.fullmatch(given) is not None and any(one in "123456789" for one in given)


def size_bytes(text: str) -> int:
    """Return the bytes of a size such as `8gb`, units in powers of 1024; ValueError if malformed.

    Raises:
        ValueError: it is no positive number followed by one of the units kb, mb, gb, tb.
    """
    match = _SIZE.match(text)
    if match is None:
        raise ValueError("must be a number followed by kb, mb, gb or tb, such as 8gb")
    size = int(float(match[1]) * _BYTES_BY_UNIT[match[2].lower()])
    if size <= 0:
        raise ValueError("must be larger than zero")
    return size


def gpu_indices(value: object) -> list[int]:
    """Return the GPU numbers that `2`, `"0,2"` or `[0, 2]` names, in order; ValueError for others.

    Args:
        value: `2`, `"2"`, `"0,2"` or `[0, 2]`.

    Raises:
        ValueError: it is none of these, an index is negative, or one occurs twice.
    """
    rule = "must be GPU numbers, such as 0, '0,2' or [0, 2]"
    if isinstance(value, bool):
        raise ValueError(rule)  # noqa: TRY004 - one error for every wrong spelling
    if isinstance(value, int):
        items: Iterable[object] = [value]
    elif isinstance(value, str):
        items = [item.strip() for item in value.split(",")] if value.strip() else []
    elif isinstance(value, list | tuple):
        items = value
    else:
        raise ValueError(rule)  # noqa: TRY004 - one error for every wrong spelling
    indices = [_gpu_index(item, rule) for item in items]
    if len(set(indices)) != len(indices):
        raise ValueError("must not name a GPU twice")
    return indices


def _gpu_index(item: object, rule: str) -> int:
    if isinstance(item, str) and item.isdecimal():
        return int(item)
    if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
        return item
    raise ValueError(rule)
