"""The symbolic pass, compared with networks that are frozen and counted one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nni
from nni.mutable import Sample
from nni.nas.hub.pytorch import DARTS
from nni.nas.nn.pytorch import (
    Cell,
    InputChoice,
    LayerChoice,
    ModelSpace,
    MutableBatchNorm2d,
    MutableConv2d,
    MutableLinear,
    ParametrizedModule,
    Repeat,
)
from nni.nas.profiler.pytorch import (
    CannotProfileError,
    FlopsParamsProfiler,
    FlopsProfiler,
    count_flops_params,
)
from nni.nas.profiler.pytorch.tracing import CostTrace, example_shapes, mark_leaf

IMAGES = torch.zeros(1, 3, 16, 16)


class Net(ModelSpace):
    """Choices of widths, kernels, layers, inputs and depths, one inside the other."""

    def __init__(self) -> None:
        super().__init__()
        width, kernel = nni.choice("width", [4, 8]), nni.choice("kernel", [3, 5])
        self.stem = MutableConv2d(3, width, kernel, padding=kernel // 2, stride=2)
        self.norm = MutableBatchNorm2d(width)
        self.body = LayerChoice(
            {
                "conv": MutableConv2d(width, width, 3, padding=1),
                "deep": Repeat(lambda _: MutableConv2d(width, width, 1), (1, 3), label="depth"),
                "skip": nn.Identity(),
            },
            label="body",
        )
        self.skip = InputChoice(2, 1, label="skip")
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.head = nn.Flatten()
        self.out = MutableLinear(width * 4, 10)

    def forward(self, images: Tensor) -> Tensor:
        stem = torch.relu(self.norm(self.stem(images)))
        body = self.skip([stem, self.body(stem)]) + stem
        scores: Tensor = self.out(self.head(self.pool(body)))
        return scores


def net_samples(space: Any, number: int) -> list[Sample]:
    samples = []
    for seed in range(number):
        sample: Sample = {}
        space.random(sample, random_state=random.Random(seed))
        samples.append(space_sample(space, sample))
    return samples


def space_sample(space: Any, sample: Sample) -> Sample:
    """Return the sample with the defaults of what it did not need."""
    memo = dict(sample)
    for label, leaf in space.simplify().items():
        if label not in memo:
            leaf.default(memo)
    return memo


def test_every_sample_has_the_cost_of_its_frozen_network() -> None:
    space = Net()
    profiler = FlopsParamsProfiler(space, IMAGES)

    for sample in net_samples(space, 20):
        assert profiler.profile(sample) == count_flops_params(space.freeze(sample), IMAGES)


@pytest.mark.parametrize("merge_op", ["all", "loose_end"])
def test_cell_has_the_cost_and_the_width_of_its_frozen_form(merge_op: Any) -> None:
    class Network(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            operators = [nn.Conv2d(3, 3, 3, padding=1), nn.Identity()]
            self.cell = Cell(operators, 3, 2, 1, merge_op, label="cell")

        def forward(self, images: Tensor) -> Any:
            return self.cell(images)

    space = Network()
    trace = CostTrace(lambda module, inputs, output: 1)
    output = trace.run(space, example_shapes(IMAGES))
    profiler = FlopsProfiler(space, IMAGES)

    for sample in net_samples(space, 10):
        network = space.freeze(sample)
        channels = output.shape[1]
        found = channels if isinstance(channels, int) else channels.freeze(sample)
        assert found == network(IMAGES).shape[1]
        assert profiler.profile(sample) == count_flops_params(network, IMAGES).flops


@pytest.mark.claim("nas", 77)
def test_repeated_layers_count_once_for_each_repetition() -> None:
    blocks = Repeat(nn.Linear(3, 3, bias=False), (1, 3), label="depth")
    fixed = Repeat(nn.Linear(3, 3, bias=False), 2)

    assert FlopsProfiler(blocks, torch.zeros(1, 3)).profile({"depth": 2}) == 18
    assert FlopsProfiler(fixed, torch.zeros(1, 3)).profile({}) == 18


def test_several_chosen_inputs_are_concatenated() -> None:
    class Network(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.both = InputChoice(2, None, reduction="concat", label="both")
            self.pair = InputChoice(2, 2, reduction="none", label="pair")

        def forward(self, images: Tensor) -> Any:
            first, second = self.pair([images, images])
            return self.both([first, torch.cat([second, images], 1)])

    output = CostTrace(lambda *_: 1).run(Network(), example_shapes(IMAGES))

    for chosen, channels in (([0], 3), ([1], 6), ([0, 1], 9)):
        assert output.shape[1].freeze({"both": chosen, "pair": [0, 1]}) == channels


class Bottleneck(ParametrizedModule):
    """Module of a user whose constructor sees one value of its mutable argument."""

    def __init__(self, features: int, inner: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, inner), nn.Linear(inner, features))

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.layers(values)
        return result


def test_module_without_a_formula_is_built_for_each_of_its_values() -> None:
    module = Bottleneck(6, nni.choice("inner", [2, 3]))
    profiler = FlopsParamsProfiler(module, torch.zeros(1, 6))

    for inner in (2, 3):
        real = count_flops_params(Bottleneck(6, inner), torch.zeros(1, 6))
        assert profiler.profile({"inner": inner}) == real


def test_output_of_such_a_module_must_have_one_shape() -> None:
    class Growing(ParametrizedModule):
        def __init__(self, features: int) -> None:
            super().__init__()
            self.layer = nn.Linear(6, features)

        def forward(self, values: Tensor) -> Tensor:
            result: Tensor = self.layer(values)
            return result

    with pytest.raises(CannotProfileError, match="the shape of its output depends on width"):
        FlopsProfiler(Growing(nni.choice("width", [2, 3])), torch.zeros(1, 6))


def test_forward_that_branches_on_a_mutable_size_is_refused_with_the_remedy() -> None:
    space = DARTS(width=4, num_cells=3)
    images = torch.zeros(1, 3, 8, 8)

    with pytest.raises(CannotProfileError, match=r"DARTS .*branches.*executable_model\(\)"):
        FlopsProfiler(space, images)

    assert count_flops_params(space.default(), images).flops > 0


def test_layer_of_torch_without_a_formula_runs_without_data() -> None:
    trace = CostTrace(lambda module, inputs, output: 1)

    output = trace.run(nn.PixelShuffle(2), example_shapes(torch.zeros(1, 4, 3, 3)))

    assert output.shape == (1, 1, 6, 6)


def test_such_a_layer_on_mutable_sizes_is_refused() -> None:
    network = nn.Sequential(MutableConv2d(3, nni.choice("width", [4, 8]), 1), nn.PixelShuffle(2))

    with pytest.raises(CannotProfileError, match="PixelShuffle has no shape formula"):
        CostTrace(lambda *_: 1).run(network, example_shapes(IMAGES))


def test_marked_class_is_one_layer() -> None:
    leaf = mark_leaf(type("Leaf", (nn.Sequential,), {}))
    network = nn.Sequential(leaf(nn.Linear(3, 3), nn.Linear(3, 3)), nn.Linear(3, 3))
    trace = CostTrace(lambda module, inputs, output: 1)

    trace.run(network, example_shapes(torch.zeros(1, 3)))

    assert trace.total in {2, 3}
    by_type = CostTrace(lambda *_: 1, leaf_types=(leaf,))
    by_type.run(network, example_shapes(torch.zeros(1, 3)))
    assert by_type.total == 2


def test_space_is_unchanged_afterwards_even_if_the_pass_fails() -> None:
    space = Net()
    before = space(IMAGES).shape

    with pytest.raises(RuntimeError, match="stop"):
        CostTrace(_stop).run(space, example_shapes(IMAGES))

    assert space(IMAGES).shape == before
    assert not any("forward" in vars(module) for module in space.modules())


def _stop(module: nn.Module, inputs: object, output: object) -> int:
    raise RuntimeError("stop")
