"""The example's search finds the hidden pairs and is better than the raw columns."""

import pytest

from nni.feature_engineering import candidate_space
from tests.support.example_searches import ExampleSearch


def test_search_finds_both_hidden_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    search = ExampleSearch("feature-generation", "evaluate")
    raw = search.trial["evaluate"]({})
    capsys.readouterr()

    found = search.run(trials=6)

    printed = capsys.readouterr().out.splitlines()
    best = max(found.trials, key=lambda record: record.value or 0)
    assert found.best_value > raw + 0.1  # one pair alone adds 0.12, both add 0.2
    assert {"crosscount_C1_C2", "crosscount_C3_C4"} <= set(printed[best.id].split())


def test_search_space_has_every_candidate() -> None:
    search = ExampleSearch("feature-generation", "evaluate")

    assert search.config.search_space == candidate_space(search.trial["SPECIFICATION"])
