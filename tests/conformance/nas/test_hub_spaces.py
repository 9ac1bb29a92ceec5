"""Every space of the model hub passes the conformance suite of spaces, on small shapes."""

from typing import Any

import torch

from nni.nas.hub.pytorch import (
    DARTS,
    ENAS,
    PNAS,
    AmoebaNet,
    AutoFormer,
    MobileNetV3Space,
    NasBench101,
    NasBench201,
    NASNet,
    ProxylessNAS,
    ShuffleNetSpace,
)
from nni.nas.nn.pytorch import ModelSpace
from nni.testing.model_spaces import ModelSpaceConformance


class _SmallImages(ModelSpaceConformance):
    draws = 2
    size = 16

    def make_inputs(self) -> tuple[Any, ...]:
        generator = torch.Generator().manual_seed(0)
        return (torch.randn(2, 3, self.size, self.size, generator=generator),)


class TestNasBench101(_SmallImages):
    computes_unfrozen = False

    def make(self) -> ModelSpace:
        return NasBench101(8, 2, 1, num_labels=3)


class TestNasBench201(_SmallImages):
    def make(self) -> ModelSpace:
        return NasBench201(4, 1, num_labels=3)


class TestNASNet(_SmallImages):
    def make(self) -> ModelSpace:
        return NASNet((4, 6), 3)


class TestENAS(_SmallImages):
    draws = 4

    def make(self) -> ModelSpace:
        return ENAS((4, 6), (3, 5))


class TestAmoebaNet(_SmallImages):
    def make(self) -> ModelSpace:
        return AmoebaNet(4, (3, 4), drop_path_prob=0.2)


class TestPNAS(_SmallImages):
    def make(self) -> ModelSpace:
        return PNAS(4, 3, auxiliary_loss=True)


class TestDARTS(_SmallImages):
    size = 32

    def make(self) -> ModelSpace:
        return DARTS((4, 8), (3, 4), dataset="imagenet")


class TestProxylessNAS(_SmallImages):
    size = 32

    def make(self) -> ModelSpace:
        return ProxylessNAS(3, width_mult=0.25)


class TestMobileNetV3Space(_SmallImages):
    size = 32

    def make(self) -> ModelSpace:
        return MobileNetV3Space(3, (8, 8, 8, 16, 16, 16, 16, 32, 32), max_depth=2)


class TestShuffleNetSpace(_SmallImages):
    size = 32

    def make(self) -> ModelSpace:
        return ShuffleNetSpace(3, width_mult=0.25)


class TestShuffleNetSpaceOfChannels(_SmallImages):
    size = 32

    def make(self) -> ModelSpace:
        return ShuffleNetSpace(3, width_mult=0.25, channel_search=True, affine=False)


class TestAutoFormer(_SmallImages):
    def make(self) -> ModelSpace:
        return AutoFormer((8, 12), (2.0, 3.0), (1, 2), (1, 2), 16, 8, head_dim=4, num_labels=3)
