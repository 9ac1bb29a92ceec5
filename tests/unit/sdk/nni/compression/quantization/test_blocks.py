import pytest
import torch

from nni.compression.base.target_quantizer import TargetPlace
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.blocks import shared_blocks, spread

WEIGHT = TargetPlace("conv", "weight", "Conv2d")


def test_the_whole_tensor_shares_one_scale() -> None:
    settings = QuantizationSettings()
    value = torch.arange(6.0).reshape(2, 3)

    assert shared_blocks(value, settings, WEIGHT).tolist() == [0, 1, 2, 3, 4, 5]
    scale = torch.tensor(2.0)
    assert spread(scale, value, settings, WEIGHT) is scale


def test_channels_broadcast_and_blocks_are_repeated() -> None:
    value = torch.arange(8.0).reshape(2, 4)
    channels = QuantizationSettings(granularity="out_channel")
    blocks = QuantizationSettings(granularity=(2, 2))

    assert shared_blocks(value, channels, WEIGHT).shape == (2, 1, 4)
    assert spread(torch.ones(2, 1), value, channels, WEIGHT).shape == (2, 1)
    assert shared_blocks(value, blocks, WEIGHT).tolist() == [[[0, 1, 4, 5], [2, 3, 6, 7]]]
    assert spread(torch.tensor([[1.0, 2.0]]), value, blocks, WEIGHT).tolist() == [
        [1, 1, 2, 2],
        [1, 1, 2, 2],
    ]


def test_blocks_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="does not divide the shape"):
        shared_blocks(torch.ones(2, 4), QuantizationSettings(granularity=(1, 3)), WEIGHT)
