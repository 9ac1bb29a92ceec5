"""Syne Tune behind the interface of the benchmark."""

import pytest

from nni_benchmark.peers.syne_tune_peer import SyneTuneScheduler, SyneTuneSearcher
from nni_benchmark.suite import suite_problems


@pytest.mark.parametrize(
    ("problem", "expected"),
    [("branin", True), ("mixed10", True), ("nested", False), ("budget", False), ("zdt1", False)],
)
def test_flat_spaces_without_limits_are_taken(problem: str, expected: bool) -> None:
    assert SyneTuneSearcher("kde").takes(suite_problems()[problem]) is expected


def test_searcher_needs_the_packages_of_its_model() -> None:
    assert SyneTuneSearcher("bore").packages == ("syne-tune", "xgboost")
    assert SyneTuneSearcher("kde").packages == SyneTuneScheduler("asha").packages


def test_names_tell_searchers_from_schedulers() -> None:
    assert SyneTuneSearcher("kde").name == "syne-kde"
    assert SyneTuneScheduler("bohb").name == "syne-bohb"
