"""Training of cells on digits."""

from __future__ import annotations

import pytest
import torch

from nni_benchmark.nas.cells import cell_of
from nni_benchmark.nas.training import CellNetwork, train_cell

CONVOLUTIONS = dict.fromkeys(cell_of(0), "conv_3x3")


@pytest.mark.parametrize("number", [0, 15_624, 4_711, 12_418])
def test_every_cell_becomes_a_network_with_a_gradient(number: int) -> None:
    network = CellNetwork(cell_of(number), 2)

    network(torch.rand(4, 1, 8, 8)).sum().backward()

    assert network.layers[-1].weight.grad is not None


def test_training_learns_and_a_cell_that_is_cut_off_does_not() -> None:
    learnt = train_cell(cell_of(12_418), seed=2, epochs=4, channels=6)
    cut_off = train_cell(cell_of(0), seed=0, epochs=1, channels=4, images=400)

    # A guess is right in one of ten images, the most frequent class in at most 11 %.
    assert learnt[-1].valid_acc > 50
    assert cut_off[-1].valid_acc < 15
    assert [one.epoch for one in learnt] == [1, 2, 3, 4]


def test_training_repeats_with_its_seed() -> None:
    runs = [
        train_cell(CONVOLUTIONS, seed=seed, epochs=1, channels=2, images=100)[-1].valid_loss
        for seed in (3, 3, 4)
    ]

    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
