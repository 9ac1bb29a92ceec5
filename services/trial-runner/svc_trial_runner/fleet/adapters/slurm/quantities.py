"""Parsing and formatting of times, sizes and counts in Slurm's notation."""

import re
from typing import Final

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400

_SHORT: Final = re.compile(r"(\d{1,15}(?:\.\d+)?)\s*([smhd])\Z")
_SHORT_S: Final = {"s": 1, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S}
_DAYS: Final = re.compile(r"(\d{1,15})-(\d{1,15})(?::(\d{1,15}))?(?::(\d{1,15}))?\Z")
_CLOCK: Final = re.compile(r"(\d{1,15})(?::(\d{1,15}))?(?::(\d{1,15}))?\Z")
_SIZE: Final = re.compile(r"(\d{1,15}(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?[nc]?\Z", re.IGNORECASE)
_MEBIBYTES: Final = {"": 1.0, "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}
_GRES: Final = re.compile(
    r"(?:gres[:/])?([^:=,()/\s]+)(?:[:/]([^:=,()\s]+))?(?:[:=](\d+))?(?:\(.*)?\Z"
)


def parse_time_limit(text: str) -> int | None:
    """Return the seconds of a Slurm time (`60` is minutes) or `2h`; None: unlimited, or no time.

    Args:
        text: in one of Slurm's forms (`minutes`, `minutes:seconds`, `hours:minutes:seconds`,
            `days-hours`, `days-hours:minutes`, `days-hours:minutes:seconds`), or a number with
            one of the units `s`, `m`, `h`, `d`.
    """
    short = _SHORT.match(text.strip())
    if short:
        return round(float(short[1]) * _SHORT_S[short[2]])
    days = _DAYS.match(text.strip())
    if days:
        hours, minutes, seconds = (int(part or 0) for part in days.groups()[1:])
        return int(days[1]) * DAY_S + hours * HOUR_S + minutes * MINUTE_S + seconds
    clock = _CLOCK.match(text.strip())
    if not clock:
        return None
    first, second, third = clock.groups()
    if third is not None:
        return int(first) * HOUR_S + int(second) * MINUTE_S + int(third)
    return int(first) * MINUTE_S + int(second or 0)


def format_time_limit(seconds: int) -> str:
    """Return a time in Slurm's form `days-hours:minutes:00`, rounded up to whole minutes.

    Slurm's limits are whole minutes.
    """
    minutes = -(-seconds // MINUTE_S)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    return f"{day}-{hour:02}:{minute:02}:00"


def parse_mebibytes(text: str) -> int | None:
    """Return the mebibytes of a size such as `4G`, `500M` or `1024`; None: it is no size."""
    match = _SIZE.match(text.strip())
    return None if match is None else round(float(match[1]) * _MEBIBYTES[match[2].lower()])


def parse_gres(text: str) -> dict[str, int]:
    """Return counts of generic resources by name, summed over types; other parts are left out.

    Args:
        text: as in `--gres` or of a node: `gpu:a100:2(S:0-1),gpu:1`; `(null)` and `N/A` are none.
    """
    counts: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        match = _GRES.match(part.strip())
        if match is None or part.strip() in {"", "N/A"}:
            continue
        name, kind, count = match.groups()
        if count is None and kind is not None and kind.isdigit():
            count = kind
        counts[name] = counts.get(name, 0) + int(count or 1)
    return counts


def parse_indices(text: str) -> list[int]:
    """Return the numbers of `3,5-7,9-15:3%2`; those after `...` are unknown and left out."""
    found: list[int] = []
    for part in text.strip("[]").partition("%")[0].split(","):
        match = re.match(r"(\d+)(?:-(\d+)(?::(\d+))?)?\Z", part.strip())
        if match is not None:
            first, last, step = match.groups()
            found.extend(range(int(first), int(last or first) + 1, int(step or 1)))
    return found
