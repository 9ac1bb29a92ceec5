"""Runs and files of runs."""

from __future__ import annotations

import math

import pytest

from nni_benchmark.runs import Run, Runs, merged, run_of, versions


def test_only_changes_of_the_regret_are_kept() -> None:
    made = run_of("a", "p", 0, 5, [math.inf, 3.0, 3.0, 1.00000049, 1.0])

    assert made.changes == ((2, 3.0), (4, 1.0))
    assert [made.regret(after) for after in range(1, 6)] == [math.inf, 3.0, 3.0, 1.0, 1.0]


def test_regret_beyond_the_run_is_refused() -> None:
    made = run_of("a", "p", 0, 2, [1.0, 1.0])

    with pytest.raises(ValueError, match="from 1 to 2, got 3"):
        made.regret(3)


def test_file_gives_back_what_was_written() -> None:
    runs = Runs({"numpy": "2"})
    runs.add(run_of("a", "p", 0, 3, [3.0, 2.0, 2.0]))
    runs.add(run_of("b", "q", 7, 3, [math.inf] * 3))

    again = Runs.from_json(runs.to_json())

    assert list(again) == list(runs)
    assert again.versions == {"numpy": "2"}


@pytest.mark.parametrize("text", ["[]", "{}", "x", '{"form": 2, "versions": {}, "runs": {}}'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no file of runs"):
        Runs.from_json(text)


def test_longer_run_takes_the_place_of_a_shorter_one() -> None:
    runs, long = Runs(), Run("a", "p", 0, 10, ((1, 5.0),))
    runs.add(long)

    runs.add(Run("a", "p", 0, 5, ((1, 4.0),)))

    assert runs.get("a", "p", 0) == long
    assert runs.regrets("a", "p", 10) == {0: 5.0}
    assert runs.regrets("a", "p", 11) == {}


def test_files_of_runs_are_put_together_and_the_longest_run_counts() -> None:
    first, second = Runs({"a": "1"}), Runs({"a": "1", "b": "2"})
    first.add(Run("p", "branin", 0, 5, ((1, 1.0),)))
    second.add(Run("p", "branin", 0, 3, ((1, 1.0),)))
    second.add(Run("q", "branin", 0, 3, ((1, 2.0),)))
    second.add(Run("ours", "branin", 0, 3, ()))

    together = merged([first, second], lambda name: name != "ours")

    assert [(run.searcher, run.trials) for run in together] == [("p", 5), ("q", 3)]
    assert together.versions == {"a": "1", "b": "2"}


def test_runs_of_different_versions_are_not_put_together() -> None:
    with pytest.raises(ValueError, match="one version of a, got 1 and 2"):
        merged([Runs({"a": "1"}), Runs({"a": "2"})])


def test_version_of_a_package_is_found_in_its_other_distribution() -> None:
    """`xgboost-cpu` installs the package `xgboost`."""
    packages = ["numpy", "xgboost", "no-such-package"]

    assert set(versions(packages)) == {"numpy", "xgboost"}
