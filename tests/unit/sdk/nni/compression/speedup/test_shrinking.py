"""Removal with proof: what does not run, or computes something else, is taken back."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.compression.speedup import shrinking
from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.pruning import masked, prune
from nni.compression.speedup.shrinking import failure_of, relative_error, shrink, tolerance


class Stubborn(nn.Module):
    """A block whose code holds a width that no attribute explains."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 4)

    def forward(self, features: Tensor) -> Tensor:
        found = self.first(features)
        assert found.shape[1] == 8, "width of 8 expected"
        return self.second(found)


def test_a_module_that_does_not_follow_keeps_its_width_and_is_named() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4), Stubborn()).eval()

    smaller, report = prune(model, torch.randn(2, 3), 0.5)

    assert smaller[0].out_features == 3
    assert smaller[3].first.out_features == 8
    assert report.fixed["3.first.bias"] == "3 does not run with fewer: width of 8 expected"
    assert report.error <= 1e-4


def test_a_module_that_computes_something_else_keeps_its_width() -> None:
    class Widthwise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 8)
            self.second = nn.Linear(8, 4)

        def forward(self, features: Tensor) -> Tensor:
            found = self.first(features)
            return self.second(found / found.shape[1])

    torch.manual_seed(0)
    model = Widthwise().eval()

    smaller, report = prune(model, torch.randn(2, 4), 0.5)

    assert smaller.first.out_features == 8
    assert report.error <= 1e-4
    assert "the outputs would differ" in report.fixed["first.weight"]


def test_the_innermost_failing_module_is_found() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 3)))
    dependencies = find_dependencies(model, torch.zeros(1, 2))
    none = np.zeros(len(dependencies.roots), dtype=bool)

    assert failure_of(model, torch.zeros(1, 2), dependencies, none) is None
    model[0][1].weight.data = torch.zeros(3, 2)
    found = failure_of(model, torch.zeros(1, 2), dependencies, none)

    assert found is not None
    assert found.path == "0.1"


def test_only_the_operation_that_computes_something_else_keeps_its_width() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, features: Tensor) -> Tensor:
            for place, layer in enumerate(self.layers):
                features = functional.relu(layer(features))
                if place == 1:
                    features = features * features.shape[1] ** -0.5
            return features

    torch.manual_seed(0)

    smaller, report = prune(Scaled().eval(), torch.randn(2, 8), 0.5)

    assert [one.out_features for one in smaller.layers] == [4, 8, 4, 8]
    assert "the outputs would differ by" in report.fixed["layers.1.bias"]
    assert "(mul in the model itself)" in report.fixed["layers.1.bias"]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([0.0], [0.5], 0.5),
        ([1.0, float("nan")], [1.0, float("nan")], 0.0),
        ([1.0, float("nan")], [1.0, 2.0], float("inf")),
        ([], [], 0.0),
    ],
)
def test_errors_of_special_outputs(left: list[float], right: list[float], expected: float) -> None:
    assert relative_error([torch.tensor(left)], [torch.tensor(right)]) == expected


def test_outputs_of_other_shapes_are_wrong() -> None:
    assert relative_error([torch.zeros(2)], [torch.zeros(3)]) == float("inf")


def test_tolerance_follows_the_type() -> None:
    assert tolerance([torch.zeros(1)]) == 1e-4
    assert tolerance([torch.zeros(1, dtype=torch.bfloat16)]) == 5e-2


def test_units_of_early_operations_stay_where_rounding_grows_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(shrinking.TOLERANCES, torch.float32, 0.0)
    torch.manual_seed(0)
    # Wide: processors differ in the order of sums, and of 64 terms one of them rounds nothing.
    layers = [nn.Linear(3, 1000), *(nn.Linear(1000, 1000) for _ in range(3)), nn.Linear(1000, 5)]
    model = nn.Sequential(*layers).eval()

    _, report = prune(model, torch.randn(64, 3), 0.5)

    assert report.error == 0.0
    assert report.fixed["0.bias"].endswith("by rounding")


def test_a_removal_that_fails_after_the_deadline_is_taken_back_as_a_whole() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Stubborn()).eval()
    inputs = torch.randn(2, 4)
    dependencies = find_dependencies(model, inputs)
    wanted = np.zeros(len(dependencies.roots), dtype=bool)
    wanted[dependencies.free()[::2]] = True
    reads = itertools.count()

    found = shrink(
        model, inputs, dependencies, wanted, lambda removed: masked(model, dependencies, removed),
        deadline=Deadline(1.0, lambda: float(next(reads))),
    )  # fmt: skip

    assert not found.removed.any()
    assert found.error == 0.0
    assert set(dependencies.reasons().values()) >= {"planning exceeded time_limit_s=1"}


def test_a_model_that_never_fits_keeps_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "MAX_ATTEMPTS", 3)
    model = nn.Sequential(nn.Linear(4, 4), *(Stubborn() for _ in range(5))).eval()

    _, report = prune(model, torch.randn(2, 4), 0.5)

    assert report.parameters_after == report.parameters_before
    assert report.error == 0.0
