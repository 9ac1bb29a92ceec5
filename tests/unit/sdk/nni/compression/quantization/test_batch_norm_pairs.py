from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.quantization.batch_norm_pairs import batch_norm_pairs
from tests.unit.sdk.nni.compression.models import Plain, Residual

IMAGE = torch.zeros(2, 3, 8, 8)


class Branches(nn.Module):
    """Model whose convolutions have outputs that are used in several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.twice, self.last = (nn.Conv2d(3, 3, 1) for _ in range(3))
        self.first, self.second, self.third, self.fourth = (nn.BatchNorm2d(3) for _ in range(4))

    def forward(self, image: Tensor, scale: float = 1.0) -> Any:
        shared = self.shared(image)
        found = self.first(shared) + shared
        found = self.second(self.twice(self.twice(found)) * scale)
        last = self.last(found)
        return self.fourth(self.third(last)), last


def test_norms_that_follow_directly_are_found() -> None:
    assert batch_norm_pairs(Plain(), IMAGE) == [("conv1.0", "conv1.1"), ("conv2.0", "conv2.1")]
    found = dict(batch_norm_pairs(Residual(), IMAGE))
    assert found == {
        "stem.0": "stem.1",
        "first.0.0": "first.0.1",
        "first.1": "first.2",
        "second.0.0": "second.0.1",
        "second.1": "second.2",
    }


def test_other_uses_of_the_output_keep_the_norm() -> None:
    assert batch_norm_pairs(Branches(), {"image": IMAGE, "scale": 2.0}) == []


def test_the_model_is_as_before() -> None:
    model = Plain()
    model.conv1[1].eval()
    before = {key: value.clone() for key, value in model.state_dict().items()}

    batch_norm_pairs(model, (torch.ones(2, 3, 8, 8),))

    assert model.training
    assert not model.conv1[1].training
    assert all(torch.equal(model.state_dict()[key], value) for key, value in before.items())
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())
