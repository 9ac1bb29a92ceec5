"""The example runs with shorter trainings than in its README."""

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


# Lightning 2.6 calls functions of torch 2.13 that are deprecated.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_evolution_searches_the_supernet(scripts: Scripts) -> None:
    printed = scripts("nas/spos/search.py", "--epochs", 2, "--models", 4, "--retrain-epochs", 2)

    best, worst = (line.split(maxsplit=3) for line in printed.splitlines()[-2:])
    assert (best[0], worst[0]) == ("best", "worst")
    assert float(best[1]) >= float(worst[1])
    assert float(best[2]) > 20  # guessing gives 10
    assert "'place3':" in best[3]
