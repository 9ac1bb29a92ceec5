"""SMAC behind the interface of the benchmark."""

import pytest

from nni_benchmark.peers.smac_peer import SmacSearcher
from nni_benchmark.suite import suite_problems


@pytest.mark.parametrize(
    ("problem", "expected"),
    [("branin", True), ("mixed10", True), ("nested", True), ("budget", False), ("zdt1", False)],
)
def test_one_objective_without_limits_is_taken(problem: str, expected: bool) -> None:
    assert SmacSearcher().takes(suite_problems()[problem]) is expected
