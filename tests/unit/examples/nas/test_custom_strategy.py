"""The example's strategy passes the conformance suite, and its comparison runs."""

from tests.support.scripts import Scripts, example_module, scripts

__all__ = ["scripts"]  # a fixture

FOLDER = "nas/custom-strategy"
TestLocalSearch = example_module(FOLDER, "test_local_search").TestLocalSearch


def test_comparison_prints_every_strategy(scripts: Scripts) -> None:
    printed = scripts(f"{FOLDER}/compare.py", "--models", 3, "--seeds", 1)

    rows = [line.split(maxsplit=2) for line in printed.splitlines()[1:]]
    assert [row[0] for row in rows] == ["random", "evolution", "local"]
    assert all(float(row[1]) > 5 and "'rate':" in row[2] for row in rows)
