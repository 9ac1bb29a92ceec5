"""The space of SPOS has twenty layers of four operators."""

import pytest
import torch

from nni.mutable import Categorical
from nni.nas.hub.pytorch import ShuffleNetSpace
from nni.nas.hub.pytorch.shufflenet import ShuffleBlock


def test_dimensions() -> None:
    leaves = ShuffleNetSpace(width_mult=0.25).simplify()

    assert list(leaves) == [f"shufflenet/layer_{number}" for number in range(1, 21)]
    assert all(
        isinstance(leaf, Categorical) and leaf.values == ["k3", "k5", "k7", "xcep"]
        for leaf in leaves.values()
    )


def test_channels_may_be_searched() -> None:
    leaves = ShuffleNetSpace(width_mult=0.25, channel_search=True).simplify()

    assert len(leaves) == 40
    assert len(list(leaves["shufflenet/channel_20"].grid())) == 10


def test_published_network_has_its_size() -> None:
    network = ShuffleNetSpace.load_searched_model("spos")

    # As published for the architecture without searched channels: about 3.5 million.
    assert sum(one.numel() for one in network.parameters()) / 1e6 == pytest.approx(3.5, abs=0.2)


def test_half_of_the_channels_passes() -> None:
    inputs = torch.randn(1, 8, 4, 4, generator=torch.Generator().manual_seed(0))

    output = ShuffleBlock(8, 8, 4, (3,))(inputs)

    assert torch.equal(output[:, :4], inputs[:, ::2])
    assert output.shape == (1, 8, 4, 4)


@pytest.mark.parametrize("kernel_sizes", [(3,), (7,), (3, 3, 3)])
def test_stride_halves_the_size(kernel_sizes: tuple[int, ...]) -> None:
    block = ShuffleBlock(6, 16, 8, kernel_sizes, stride=2)

    assert block(torch.zeros(2, 6, 9, 9)).shape == (2, 16, 5, 5)
