"""The example's pruner passes the conformance suite, and its comparison runs."""

import pytest
import torch

from tests.support.scripts import Scripts, example_module, scripts

__all__ = ["scripts"]  # a fixture

FOLDER = "compression/custom-pruner"
TestPeakPruner = example_module(FOLDER, "test_peak_pruner").TestPeakPruner


def test_metric_is_the_largest_magnitude_of_each_channel() -> None:
    peaks = example_module(FOLDER, "peak_pruner").peaks
    blocks = torch.tensor([[2.0, 0.0], [1.0, 1.0], [-1.5, 0.2]])

    assert peaks(blocks).tolist() == [2.0, 1.0, 1.5]


def test_comparison_prints_every_pruner(scripts: Scripts) -> None:
    printed = scripts(f"{FOLDER}/compare.py", "--epochs", 1, "--seeds", 1)

    table = {line.split()[0]: line.split()[1:] for line in printed.splitlines()[1:]}
    assert list(table) == ["dense", "random", "L1", "peak"]
    dense = float(table["dense"][0])
    for name in ("L1", "peak"):
        assert float(table[name][1]) == pytest.approx(dense, abs=15), name
