"""The page on the names of NNI 2.x and 3.0 says the truth about each of them.

Its tables have an import path, names, and what they are here: `the same`, a new spelling,
`not available yet`, or `out of scope` with the reason.
"""

from __future__ import annotations

import pytest

from tests.support.name_tables import attribute, exists, fault_of, rows_of

PAGE = "coming-from-nni-compression.md"
ROWS = rows_of(PAGE)
IDS = [f"{path}.{name}" for path, name, _ in ROWS]


@pytest.mark.parametrize(("path", "name", "here"), ROWS, ids=IDS)
def test_name_is_what_the_page_says(path: str, name: str, here: str) -> None:
    assert fault_of(path, name, here) == ""


def test_tables_name_every_generation() -> None:
    paths = {path for path, _, _ in ROWS}

    assert len(ROWS) > 100
    assert len(set(IDS)) == len(IDS)
    assert {
        "nni.algorithms.compression.pytorch.pruning",
        "nni.algorithms.compression.v2.pytorch.pruning",
        "nni.compression.pruning",
        "nni.compression.quantization",
    } <= paths


def test_path_that_names_nothing_is_seen() -> None:
    assert not exists("nni.compression.pruning", "NoSuchPruner")
    with pytest.raises(AttributeError):
        attribute("nni.compression.pruning.NoSuchPruner")
