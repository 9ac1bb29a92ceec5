"""The example's metric is a dict, and its search finds most of the true neighbours."""

import pytest

from tests.support.example_searches import ExampleSearch

FOLDER = "nearest-neighbours"


def test_score_is_recall_less_latency() -> None:
    trial = ExampleSearch(FOLDER, "evaluate").trial

    usual = trial["evaluate"]({})

    score = usual["recall"] - trial["PENALTY"] * usual["latency_ms"]
    assert usual["default"] == pytest.approx(score)
    assert 0.1 < usual["recall"] < 0.5


def test_search_finds_an_index_with_most_of_the_neighbours() -> None:
    found = ExampleSearch(FOLDER, "evaluate").run(trials=5)

    # The first proposals depend on the seed alone, and recall on the parameters.
    recalls = [record.result["recall"] for record in found.trials]
    assert max(recalls) > 0.9
