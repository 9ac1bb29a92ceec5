"""What one look of `nnictl doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Result: TypeAlias = Literal["ok", "note", "bad"]
"""`note`: legal, but worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    result: Result
    explanation: str
    """What was found and, unless it is `ok`, what to do."""
