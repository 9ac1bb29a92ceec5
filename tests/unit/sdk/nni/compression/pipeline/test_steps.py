"""Steps of pipelines."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nni.compression.pipeline.steps import DistilStep, FineTuneStep, PruneStep

INPUTS = torch.ones(1, 4)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def test_prune_makes_a_smaller_copy() -> None:
    model = network()

    smaller = PruneStep(0.5, round_to=3).run(model, model, INPUTS)

    assert smaller[0].out_features == 6
    assert model[0].out_features == 8


def test_wrong_sparsity_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"sparsity must be in \[0, 1\), got 1"):
        PruneStep(1)


def test_teacher_is_a_copy_of_the_original_that_does_not_learn() -> None:
    original, seen = network(), []

    def train(student: nn.Module, teacher: nn.Module) -> None:
        seen.append(teacher)
        student(INPUTS).sum().backward()
        teacher(INPUTS).detach()

    DistilStep(train).run(network(), original, INPUTS)

    (teacher,) = seen
    assert teacher is not original
    assert not teacher.training
    assert not any(one.requires_grad for one in teacher.parameters())
    assert all(one.requires_grad for one in original.parameters())


def test_names_can_be_chosen() -> None:
    assert [FineTuneStep(print).name, FineTuneStep(print, "again").name, PruneStep(0.25).name] == [
        "fine-tune", "again", "prune 0.25",
    ]  # fmt: skip
