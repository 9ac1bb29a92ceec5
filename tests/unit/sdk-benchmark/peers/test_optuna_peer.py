"""Optuna behind the interface of the benchmark."""

import pytest

from nni_benchmark.peers import peer_searchers
from nni_benchmark.runs import run
from nni_benchmark.suite import suite_problems
from tests.support.peers import require_peer

PEERS = {peer.name: peer for peer in peer_searchers() if peer.name.startswith("optuna")}


@pytest.mark.parametrize("name", PEERS)
def test_packages_are_named(name: str) -> None:
    assert "optuna" in PEERS[name].packages


def test_several_objectives_and_branches_are_taken() -> None:
    problems = suite_problems()

    assert PEERS["optuna-tpe"].takes(problems["zdt1"])
    assert PEERS["optuna-tpe"].takes(problems["nested"])


def test_search_evaluates_as_often_as_it_is_allowed() -> None:
    peer = PEERS["optuna-tpe"]
    require_peer(peer)

    found = run(peer, suite_problems()["branin"], 0, 12)

    assert found.searcher == "optuna-tpe"
    assert found.regret(12) <= found.regret(1)
