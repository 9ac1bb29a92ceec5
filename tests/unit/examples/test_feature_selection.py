"""The example's benchmark measures selectors on generated tables and on files."""

from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture

SCRIPT = "feature-selection/benchmark.py"


def rows(printed: str) -> dict[str, list[str]]:
    """Return the last five words of each row by the selector."""
    lines = [line.split() for line in printed.splitlines()[1:]]
    return {words[-6]: words[-5:] for words in lines}


def test_trees_find_most_of_the_informative_columns(scripts: Scripts) -> None:
    found = rows(scripts(SCRIPT, "--one-process", "--data", "62 x 2000"))

    assert set(found) == {"columns", "gradient", "GBDT", "trees"}
    assert int(found["GBDT"][1]) >= 15  # 20 columns at random have 0.2
    assert float(found["GBDT"][2]) >= float(found["gradient"][2])


def test_files_of_a_folder_are_measured(scripts: Scripts, tmp_path: Path) -> None:
    table = np.random.default_rng(0).normal(size=(200, 40))
    folder = tmp_path / "data"
    folder.mkdir()
    dump_svmlight_file(table, np.where(table[:, 3] > 0, 1, -1), str(folder / "third"))

    printed = scripts(SCRIPT, "--one-process", "--folder", folder, "--selector", "GBDT")

    (columns, informative, accuracy, *_) = rows(printed)["GBDT"]
    assert columns == "20"
    assert informative == "-"
    assert float(accuracy) >= 0.9
