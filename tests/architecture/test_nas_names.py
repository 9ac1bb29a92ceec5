"""The page on the names of architecture search says the truth about each of them."""

from __future__ import annotations

import pytest

from tests.support.name_tables import fault_of, rows_of

PAGE = "coming-from-nni-nas.md"
ROWS = rows_of(PAGE)
IDS = [f"{path}.{name}" for path, name, _ in ROWS]


@pytest.mark.claim("nas", 85)
@pytest.mark.parametrize(("path", "name", "here"), ROWS, ids=IDS)
def test_name_is_what_the_page_says(path: str, name: str, here: str) -> None:
    assert fault_of(path, name, here) == ""


def test_tables_name_every_generation() -> None:
    paths = {path for path, _, _ in ROWS}

    assert len(ROWS) > 100
    assert len(set(IDS)) == len(IDS)
    assert {
        "nni.algorithms.nas.pytorch.darts",
        "nni.retiarii.strategy",
        "nni.nas.strategy",
    } <= paths
