"""Checks of the fields of a job's JSON, without torch; each names the field and its rule."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

_LARGEST_LIMIT: Final = 2**31 - 1


class JobError(ValueError):
    """Error that a job's description breaks a rule; has field and problem.

    Args:
        field: place of the value, such as `schedule.iterations`.
        problem: the rule, the value and the remedy.

    Attributes:
        field: see above.
        problem: see above.

    Examples:
        >>> raise JobError("seed", "must be an integer, got 'x'")
        Traceback (most recent call last):
        nni.compression.job.field_checks.JobError: seed must be an integer, got 'x'
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


def fields_of(
    value: object, field: str, required: Sequence[str], optional: Collection[str]
) -> Mapping[str, object]:
    """Return a mapping unchanged; raise JobError if a key is unknown or missing.

    Args:
        value: decoded JSON.
        field: place of the value; `job` for the whole description.
        required: keys that must be there.
        optional: keys that may be there.

    Raises:
        JobError: it is no mapping, or a key is unknown or missing.
    """
    prefix = "" if field == "job" else f"{field}."
    given = named_values(value, field)
    known = [*required, *optional]
    for key in given:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise JobError(f"{prefix}{key}", f"is no field of a job; {hint}")
    for key in required:
        if key not in given:
            raise JobError(f"{prefix}{key}", "is missing")
    return given


def named_values(value: object, field: str) -> Mapping[str, object]:
    """Return a mapping unchanged if all keys are texts; raise JobError for any other value."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise JobError(field, f"must be an object with named values, got {value!r}")
    return cast("Mapping[str, object]", value)


def entries_of(value: object, field: str) -> tuple[Mapping[str, object], ...]:
    """Return a non-empty list of mappings as a tuple; raise JobError for any other value."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise JobError(field, f"must be a list of one or more entries, got {value!r}")
    return tuple(named_values(entry, f"{field}[{place}]") for place, entry in enumerate(value))


def text_of(value: object, field: str, pattern: re.Pattern[str], rule: str) -> str:
    """Return a text that matches a pattern; raise JobError for any other value.

    Args:
        value: decoded JSON.
        field: its place.
        pattern: matches from the beginning.
        rule: says the same to people, after "must be".

    Raises:
        JobError: it is no such text.
    """
    if not isinstance(value, str) or not pattern.match(value):
        raise JobError(field, f"must be {rule}, got {value!r}")
    return value


def name_of(value: object, field: str, known: Sequence[str]) -> str:
    """Return a value that is one of the known names; raise JobError, with the closest, if not."""
    if not isinstance(value, str) or value not in known:
        close = difflib.get_close_matches(str(value), known, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise JobError(field, f"must be one of {', '.join(known)}, got {value!r}{hint}")
    return value


def integer_of(value: object, field: str, least: int, most: int) -> int:
    """Return an integer within limits; raise JobError for any other value."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise JobError(field, f"must be an integer from {least} to {most}, got {value!r}")
    return value


def limit_of(value: object, field: str) -> int | None:
    """Return a limit of training, above 0; None for no limit; raise JobError for other values."""
    return None if value is None else integer_of(value, field, 1, _LARGEST_LIMIT)
