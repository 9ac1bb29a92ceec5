"""The example runs with shorter trainings than in its README."""

import re

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


# Lightning 2.6 calls functions of torch 2.13 that are deprecated.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_exported_network_is_trained_beside_random_ones(scripts: Scripts) -> None:
    printed = scripts("nas/darts/search.py", "--epochs", 1, "--retrain-epochs", 2, "--random", 1)

    assert "exported: {'cell/op_1_0': " in printed
    accuracies = [float(one) for one in re.findall(r"([\d.]+) %", printed)]
    assert len(accuracies) == 2
    assert min(accuracies) > 20  # guessing gives 10
