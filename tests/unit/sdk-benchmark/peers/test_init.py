"""Other libraries behind the interface; those that are not installed are left out."""

from __future__ import annotations

import pytest

from nni_benchmark.peers import peer_searchers
from nni_benchmark.problem import Problem
from nni_benchmark.runs import run
from nni_benchmark.suite import suite_problems
from tests.support.peers import require_peer

PEERS = {peer.name: peer for peer in peer_searchers()}
SLOW = {"optuna-gp", "smac", "syne-bore"}
"""Their models cost seconds."""
TAKEN = [
    (name, problem)
    for name in sorted(PEERS.keys() - SLOW)
    for problem in ("branin", "mixed10", "nested", "budget", "thin", "zdt1")
    if PEERS[name].takes(suite_problems()[problem])
]


@pytest.mark.parametrize(("name", "problem"), TAKEN)
def test_peer_repeats_with_its_seed_on_what_it_takes(name: str, problem: str) -> None:
    peer, searched = PEERS[name], suite_problems()[problem]
    require_peer(peer)

    assert run(peer, searched, 0, 14) == run(peer, searched, 0, 14)


def test_every_problem_of_one_objective_has_a_model_based_peer() -> None:
    def taken(problem: Problem) -> bool:
        return PEERS["optuna-tpe"].takes(problem) and (
            "objectives" in problem.kinds or PEERS["hyperopt-tpe"].takes(problem)
        )

    assert all(taken(problem) for problem in suite_problems().values())


def test_syne_tune_takes_flat_spaces_only() -> None:
    problems = suite_problems()

    assert PEERS["syne-kde"].takes(problems["mixed10"])
    assert not PEERS["syne-kde"].takes(problems["nested"])
    assert not PEERS["smac"].takes(problems["zdt1"])
