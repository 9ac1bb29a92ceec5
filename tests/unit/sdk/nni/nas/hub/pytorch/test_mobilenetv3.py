"""The space around MobileNetV3 contains the published network."""

import random

import pytest
import torch
from torch import nn

from nni.mutable import Categorical
from nni.nas.hub.pytorch import MobileNetV3Space


def small(**arguments: object) -> MobileNetV3Space:
    defaults = {"num_labels": 4, "base_widths": (8, 8, 8, 16, 16, 16, 16, 32, 32), "max_depth": 2}
    return MobileNetV3Space(**{**defaults, **arguments})  # type: ignore[arg-type] # of a test


def test_published_network_has_its_size() -> None:
    network = MobileNetV3Space.load_searched_model("mobilenetv3-large-100")

    # As published: 5.4 million. The last layers of attention are rounded to multiples of 8.
    assert sum(one.numel() for one in network.parameters()) / 1e6 == pytest.approx(5.48, abs=0.05)
    assert network.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)


def test_dimensions_of_the_whole_space() -> None:
    leaves = MobileNetV3Space().simplify()

    # Widths of stem, head and 6 stages, 5 depths, and 3 of each of 21 blocks.
    assert len(leaves) == 8 + 5 + 3 * 21
    width = leaves["mobilenetv3/s3_width"]
    assert isinstance(width, Categorical)
    assert width.default() == 1.0


def test_blocks_beyond_the_depth_are_not_built() -> None:
    space = small()
    for depth in (1, 2):
        memo = {f"mobilenetv3/s{stage}_depth": depth for stage in range(1, 6)}
        network = space.random(memo, random.Random(0))
        assert [len(stage) for stage in list(network.blocks)[1:]] == [depth] * 5


def test_one_factor_and_one_block_are_not_searched() -> None:
    labels = small(width_multipliers=(1.0,), max_depth=1).simplify()

    assert not [label for label in labels if label.endswith(("_width", "_depth"))]


def test_normalizations_have_the_given_arguments() -> None:
    network = small(bn_eps=0.5, bn_momentum=0.25).default()

    found = {
        (one.eps, one.momentum) for one in network.modules() if isinstance(one, nn.BatchNorm2d)
    }
    assert found == {(0.5, 0.25)}


def test_wrong_number_of_widths_is_refused() -> None:
    with pytest.raises(ValueError, match="base_widths must be 9 numbers"):
        MobileNetV3Space(base_widths=(8, 8))


def test_sampling_does_not_build_networks() -> None:
    space = MobileNetV3Space()
    state = random.Random(0)

    samples = [space.random_sample(random_state=state) for _ in range(3)]

    assert all(space.contains(sample) for sample in samples)
    assert samples[0] != samples[1]
