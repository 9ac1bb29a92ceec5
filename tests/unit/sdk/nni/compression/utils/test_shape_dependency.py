import csv
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.pruning import L1NormPruner
from nni.compression.utils import (
    AttentionWeightDependency,
    ChannelDependency,
    GroupDependency,
    InputChannelDependency,
    ReshapeDependency,
    not_safe_to_prune,
)
from tests.unit.sdk.nni.compression.attention_model import encoder, names_of, tokens
from tests.unit.sdk.nni.compression.models import build
from tests.unit.sdk.nni.compression.resnet import IMAGE, resnet18

SETS = """
conv1 layer1.0.conv2 layer1.1.conv2
layer1.0.conv1
layer1.1.conv1
layer2.0.conv1
layer2.0.conv2 layer2.0.downsample.0 layer2.1.conv2
layer2.1.conv1
layer3.0.conv1
layer3.0.conv2 layer3.0.downsample.0 layer3.1.conv2
layer3.1.conv1
layer4.0.conv1
layer4.0.conv2 layer4.0.downsample.0 layer4.1.conv2
layer4.1.conv1
"""


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.claim("compression", 80)
def test_resnet18_has_the_documented_twelve_sets(tmp_path: Path) -> None:
    found = ChannelDependency(resnet18(), IMAGE)
    found.export(tmp_path / "dependency.csv")

    expected = [line.split() for line in SETS.split("\n") if line]
    assert found.dependency_sets == [set(names) for names in expected]
    rows = rows_of(tmp_path / "dependency.csv")
    assert rows[0] == ["Dependency Set", "Convolutional Layers"]
    assert rows[1:] == [[f"Set {place}", *one] for place, one in enumerate(expected, 1)]
    assert len(rows) == 13


def test_batch_norms_of_added_outputs_share_a_set() -> None:
    found = ChannelDependency(resnet18(), IMAGE, prune_type="Batchnorm")

    assert {"bn1", "layer1.0.bn2", "layer1.1.bn2"} in found.dependency_sets
    assert {"layer1.0.bn1"} in found.dependency_sets


def test_a_depthwise_convolution_is_in_the_set_of_the_layer_before_it() -> None:
    model, image = build("squeeze-excite")

    found = ChannelDependency(model, image).dependency_sets

    assert {"stem.0", "depthwise.0", "expand"} in found
    assert {"reduce"} in found
    assert {"project"} in found


def test_joined_channels_stay_apart_and_linear_layers_that_share_none_are_left_out() -> None:
    model, image = build("dense")

    assert ChannelDependency(model, image).dependency_sets == [
        {"stem.0"}, {"first.0"}, {"second.2"}
    ]  # fmt: skip


def test_layers_that_read_the_same_channels_share_a_set() -> None:
    found = InputChannelDependency(resnet18(), IMAGE).dependency_sets

    # All of them read the sums of the first stage.
    assert {"layer1.0.conv1", "layer1.1.conv1", "layer2.0.conv1", "layer2.0.downsample.0"} in found
    assert {"layer1.0.conv2"} in found


@pytest.mark.claim("compression", 81)
def test_groups_of_the_convolution_and_of_its_readers_count(tmp_path: Path) -> None:
    grouped = nn.Sequential(
        nn.Conv2d(4, 8, 1, groups=2), nn.ReLU(), nn.Conv2d(8, 8, 1, groups=4), nn.Conv2d(8, 8, 1)
    )
    depthwise = nn.Sequential(nn.Conv2d(4, 8, 1), nn.Conv2d(8, 8, 1, groups=8))

    found = GroupDependency(grouped, torch.zeros(1, 4, 2, 2))
    found.export(tmp_path / "groups.csv")

    assert found.dependency_sets == {"0": 4, "2": 4, "3": 1}
    assert found.min_groups == {"0": 2, "2": 4, "3": 1}
    assert rows_of(tmp_path / "groups.csv") == [
        ["Conv Layer Name", "Group"], ["0", "4"], ["2", "4"], ["3", "1"]
    ]  # fmt: skip
    assert GroupDependency(depthwise, torch.zeros(1, 4, 2, 2)).dependency_sets == {"0": 1, "1": 1}


class Reshaped(nn.Module):
    """The documented example: a convolution, then a view with the number of its channels."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 1)
        self.conv = nn.Conv2d(8, 16, 3)
        self.fc = nn.Linear(16, 4)

    def forward(self, image: Tensor) -> Tensor:
        found = self.conv(self.first(image).relu()).relu()
        return self.fc(found.view(-1, 16)).reshape(-1, 2, 2).reshape(-1, 4)


@pytest.mark.claim("compression", 82)
def test_the_layer_before_a_view_is_not_safe_to_prune(tmp_path: Path) -> None:
    model, image = Reshaped(), torch.zeros(1, 3, 3, 3)

    found = ReshapeDependency(model, image)
    found.export(tmp_path / "reshape.csv")

    assert found.dependency_sets == {"view": ["conv"], "reshape": ["fc"], "reshape_1": ["fc"]}
    assert not_safe_to_prune(model, image) == ["conv", "fc"]
    assert rows_of(tmp_path / "reshape.csv") == [
        ["Reshape OP", "Dependent Layers"], ["view", "conv"], ["reshape", "fc"], ["reshape_1", "fc"]
    ]  # fmt: skip


def test_operations_are_named_after_their_module() -> None:
    found = ReshapeDependency(nn.Sequential(Reshaped()), torch.zeros(1, 3, 3, 3)).dependency_sets

    assert found["0.view"] == ["0.conv"]


def test_flatten_is_no_reshape_with_sizes_in_the_code() -> None:
    model, image = build("plain")

    assert not_safe_to_prune(model, image) == []


def test_the_projections_of_each_attention_are_listed(tmp_path: Path) -> None:
    found = AttentionWeightDependency(encoder(), tokens())
    found.export(tmp_path / "attention.csv")

    assert found.dependency_sets == names_of()
    assert rows_of(tmp_path / "attention.csv")[:2] == [
        ["Dependency Set", "Linear Layers"], ["Group 1", *names_of()[0]]
    ]  # fmt: skip


def test_the_analysis_leaves_the_model() -> None:
    model = resnet18().train()
    before = {name: one.clone() for name, one in model.state_dict().items()}

    ChannelDependency(model, IMAGE)

    assert model.training
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((None, IMAGE), TypeError, "model must be a torch.nn.Module, got NoneType"),
        ((nn.Linear(1, 1), None), TypeError, "dummy_input must be inputs of the model"),
        ((nn.Linear(1, 1), IMAGE, None, "BN"), ValueError, "prune_type must be 'Filter' or"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ChannelDependency(*arguments)


def test_a_wrapped_model_is_refused() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1))
    L1NormPruner(model, [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}])

    with pytest.raises(ValueError, match="module 0 is wrapped by a pruner"):
        GroupDependency(model, IMAGE)
