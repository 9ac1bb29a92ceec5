"""The example runs with fewer and shorter trainings than in its README."""

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_each_strategy_finds_a_network(scripts: Scripts) -> None:
    printed = scripts("nas/multi_trial/search.py", "--models", 2, "--epochs", 1)

    rows = [line.split(maxsplit=3) for line in printed.splitlines()[1:3]]
    assert [row[:2] for row in rows] == [["random", "2"], ["evolution", "2"]]
    assert all(float(row[2]) > 20 for row in rows)  # guessing gives 10
    assert all("'width':" in row[3] for row in rows)
    assert "parameters" in printed
