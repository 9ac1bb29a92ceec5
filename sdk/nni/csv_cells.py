"""Cells of CSV files that spreadsheets must not run as formulas; writer and reader share the rule.

Names, parameters and messages come from other users and machines.

Source: OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection.
"""

from __future__ import annotations

import re
from typing import Final

_FORMULA: Final = re.compile(r"'*[=+\-@\t\r\n]")
"""Start of texts that spreadsheets take for formulas, and of such texts that were guarded."""
_GUARD: Final = "'"


def guarded_cell(cell: object) -> object:
    """Return a cell, with a quote in front of a text that a spreadsheet would run as a formula.

    Args:
        cell: a number or a text; numbers, also as texts such as `-1.5`, stay as they are.

    Examples:
        >>> guarded_cell("=1+1"), guarded_cell("-1.5"), guarded_cell(-1.5), guarded_cell("adam")
        ("'=1+1", '-1.5', -1.5, 'adam')
    """
    return f"{_GUARD}{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def unguarded_text(text: str) -> str:
    """Return the text for which `guarded_cell` returned this one.

    Examples:
        >>> unguarded_text("'=1+1"), unguarded_text("'tis")
        ('=1+1', "'tis")
    """
    return text[1:] if text.startswith(_GUARD) and _FORMULA.match(text) else text


def _is_formula(text: str) -> bool:
    if not _FORMULA.match(text):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
