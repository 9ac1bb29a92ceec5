"""Runs that follow a recorded graph."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nni.compression.speedup.following import (
    DeviationError,
    DivergedError,
    RecordedPosition,
    changed_sizes,
    check_sizes,
    first_difference,
    kept_sums,
)
from nni.compression.speedup.groups import Dependencies, find_dependencies
from nni.compression.speedup.pruning import choose_units, l1_scores, masked
from nni.compression.speedup.recording import capture
from nni.compression.speedup.removal import Undo, remove
from nni.compression.speedup.slots import Flags
from tests.unit.sdk.nni.compression.models import build, randomised


def planned(model: nn.Module, inputs: Tensor) -> tuple[Dependencies, Flags]:
    dependencies = find_dependencies(model, inputs)
    return dependencies, choose_units(dependencies, l1_scores(model, dependencies), 0.5)


def test_new_sizes_of_values_follow_the_removed_units() -> None:
    model, inputs = build("plain")
    dependencies = find_dependencies(model, inputs)
    removed = choose_units(dependencies, l1_scores(model, dependencies), 0.5)
    [flat] = [
        node.outputs[0] for node in dependencies.graph.nodes if node.op.endswith("_unsafe_view")
    ] or [node.outputs[0] for node in dependencies.graph.nodes if node.op == "aten.view"]

    assert changed_sizes(dependencies, removed, flat) == {1: 96}


class Headed(nn.Module):
    """A view whose size in the middle is inferred, so that it never raises."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, features: Tensor) -> Tensor:
        return self.last(self.first(features).reshape(-1, 8))


def test_the_first_operation_with_an_unexpected_size_is_named() -> None:
    model: Any = randomised(Headed())
    inputs = torch.randn(4, 4)
    dependencies, removed = planned(model, inputs)
    remove(model, dependencies, removed, Undo())

    with pytest.raises(DeviationError, match=r"view in .*: \(2, 8\) is not \(4, 4\)") as caught:
        check_sizes(model, inputs, dependencies, removed)

    assert caught.value.node.op == "aten.view"


def test_a_model_of_original_size_has_no_deviation() -> None:
    model, inputs = build("residual")
    dependencies, removed = planned(model, inputs)

    check_sizes(model, inputs, dependencies, np.zeros_like(removed))


def test_sums_of_the_masked_and_the_smaller_model_agree() -> None:
    model, inputs = build("squeeze-excite")
    dependencies, removed = planned(model, inputs)
    with masked(model, dependencies, removed):
        expected = kept_sums(model, inputs, dependencies, removed)
    remove(model, dependencies, removed, Undo())

    found = kept_sums(model, inputs, dependencies)

    assert len(found) == len(expected) > 10
    assert first_difference(expected, found) is None


def test_sums_that_are_not_finite_are_not_compared() -> None:
    infinite = float("inf")

    assert first_difference({(0, 0): (infinite, infinite)}, {(0, 0): (1.0, 1.0)}) is None


def test_a_run_with_other_operations_has_no_position() -> None:
    position = RecordedPosition(capture(nn.ReLU(), torch.zeros(1)))

    node = position.advance("aten.relu")
    assert node is not None
    assert node.op == "aten.relu"
    with pytest.raises(DivergedError, match="does not repeat"):
        position.advance("aten.relu")
