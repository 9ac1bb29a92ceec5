"""hyperopt behind the interface of the benchmark."""

from nni_benchmark.peers.hyperopt_peer import HyperoptSearcher
from nni_benchmark.runs import run
from nni_benchmark.suite import suite_problems
from tests.support.peers import require_peer


def test_problems_of_one_objective_are_taken() -> None:
    problems = suite_problems()

    assert HyperoptSearcher().takes(problems["nested"])
    assert not HyperoptSearcher().takes(problems["zdt1"])


def test_infeasible_configurations_do_not_end_the_search() -> None:
    peer = HyperoptSearcher()
    require_peer(peer)

    found = run(peer, suite_problems()["budget"], 0, 12)

    assert found.searcher == "hyperopt-tpe"
    assert found.trials == 12
