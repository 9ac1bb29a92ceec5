"""Result of one check of `nnictl doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Result: TypeAlias = Literal["ok", "note", "bad"]
"""`note`: legal, but worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check of `nnictl doctor`: ok, note or bad, with explanation and remedy."""

    check: str
    result: Result
    explanation: str
    """Result of the check and, unless it is `ok`, its remedy."""
