import numpy as np
import torch
from torch import Tensor, nn

from nni.compression.pruning.amc.channels import (
    ChannelSet,
    LayerCost,
    channel_sets,
    layer_costs,
    total_flops,
)
from nni.compression.speedup.counter import count_flops_params
from nni.compression.speedup.groups import find_dependencies

IMAGE = torch.ones(2, 3, 4, 4)


class Mobile(nn.Module):
    """Pointwise and depthwise convolutions with a residual connection, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.expand = nn.Conv2d(8, 12, 1)
        self.depthwise = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.project = nn.Conv2d(12, 8, 1)
        self.head = nn.Linear(8 * 16, 5)

    def forward(self, image: Tensor) -> Tensor:
        found = self.stem(image)
        found = found + self.project(self.depthwise(self.expand(found)))
        return self.head(found.flatten(1))


def parts(model: nn.Module, prunable: set[str]) -> tuple[list[LayerCost], list[ChannelSet], int]:
    dependencies = find_dependencies(model, IMAGE)
    counted = count_flops_params(model, IMAGE, verbose=False)[2]
    layers = layer_costs(model, dependencies, {one["name"]: one["flops"] for one in counted})
    weights = {name: model.get_submodule(name).get_parameter("weight") for name in prunable}
    sets = channel_sets(layers, prunable, dependencies.frozen, weights)
    return layers, sets, len(dependencies.frozen)


def test_layers_that_read_the_same_channels_are_decided_together() -> None:
    _, sets, _ = parts(Mobile(), {"stem", "expand", "depthwise", "project", "head"})

    # The input of the model stays; head and expand read the sum; project what follows depthwise.
    assert [one.layers for one in sets] == [("expand", "head"), ("project",)]
    assert [len(one.units) for one in sets] == [8, 12]


def test_channels_that_another_layer_reads_stay() -> None:
    _, sets, _ = parts(Mobile(), {"expand", "project"})

    assert [one.layers for one in sets] == [("project",)]


def test_the_channels_with_the_largest_weights_come_first() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 2, 1))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([3.0, -9.0, 1.0, 5.0]).reshape(1, 4, 1, 1))
    layers, (one,), _ = parts(model, {"1"})
    (inputs,) = (layer.channels.input_units for layer in layers if layer.channels.name == "1")

    order = [inputs.tolist().index(unit) for unit in one.units]

    assert order == [1, 3, 0, 2]


def test_operations_follow_the_channels_that_stay() -> None:
    model = Mobile()
    layers, sets, count = parts(model, {"expand", "project", "head"})
    kept = np.ones(count, dtype=bool)

    whole = {one.channels.name: one.flops_with(kept) for one in layers}
    kept[sets[1].units[6:]] = False
    half = {one.channels.name: one.flops_with(kept) for one in layers}

    assert sum(whole.values()) == count_flops_params(model, IMAGE, verbose=False)[0]
    ratios = {name: half[name] / whole[name] for name in whole}
    assert ratios == {"stem": 1, "expand": 0.5, "depthwise": 0.5, "project": 0.5, "head": 1}
    assert total_flops(layers, kept) == sum(half.values())


def test_counts_are_rounded_up_to_a_multiple() -> None:
    one = ChannelSet(("a",), np.arange(20))

    assert [one.kept_count(ratio, 8) for ratio in (0.0, 0.4, 0.41, 0.9, 1.0)] == [8, 8, 16, 20, 20]
    assert one.kept_count(0.3, 1) == 6  # 0.3 * 20 is 6, not 7 by rounding errors
