"""Figures with their targets, collected by a benchmark and printed as one table at its end."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from tests.benchmarks.measure import record_missed


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure."""

    what: str
    found: str
    """With its unit."""
    target: str
    met: bool
    note: str = ""
    """How it was measured, where that matters; or what was left out."""


def at_most(what: str, found: float, limit: float, unit: str = "", note: str = "") -> Figure:
    """Return a figure that should be small."""
    return Figure(what, f"{found:.3g}{unit}", f"<= {limit:g}{unit}", found <= limit, note)


def at_least(what: str, found: float, limit: float, unit: str = "", note: str = "") -> Figure:
    """Return a figure that should be large."""
    return Figure(what, f"{found:.3g}{unit}", f">= {limit:g}{unit}", found >= limit, note)


def print_figures(figures: Iterable[Figure]) -> None:
    """Print the table."""
    rows = list(figures)
    wide = [max((len(getattr(row, key)) for row in rows), default=0) for key in _COLUMNS]
    for row in rows:
        if not row.met:
            record_missed(f"{row.what}: {row.found}, target {row.target}")
        cells = (getattr(row, key).ljust(width) for key, width in zip(_COLUMNS, wide, strict=True))
        print("   " + "  ".join((*cells, "met   " if row.met else "MISSED", row.note)).rstrip())
    print(f"   {sum(row.met for row in rows)} of {len(rows)} met")
    sys.stdout.flush()


_COLUMNS = ("what", "found", "target")
