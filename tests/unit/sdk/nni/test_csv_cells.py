"""Cells of CSV files that spreadsheets must not run."""

import pytest

from nni.csv_cells import guarded_cell, unguarded_text


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|x", "-a", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1"]
)
def test_formula_is_guarded_and_read_back(text: str) -> None:
    written = guarded_cell(text)

    assert written == f"'{text}"
    assert unguarded_text(str(written)) == text


@pytest.mark.parametrize(
    "cell", ["-1.5", "+3", "-1e-3", "-inf", -1.5, "adam", "", "'tis", "[1]", True]
)
def test_numbers_and_other_texts_stay(cell: object) -> None:
    assert guarded_cell(cell) is cell
    assert unguarded_text(str(cell)) == str(cell)
