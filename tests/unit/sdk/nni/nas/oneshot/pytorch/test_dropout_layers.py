import pytest
import torch
from torch import Tensor, nn

import nni
from nni.nas.nn.pytorch import ModelSpace, MutableAlphaDropout, MutableDropout, MutableDropout2d
from nni.nas.oneshot.pytorch.dropout_layers import DROPOUTS, DropoutSlicing
from nni.nas.oneshot.pytorch.slicing_registry import slicing_of
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import as_mixture, as_path


class Rates(ModelSpace):
    """One layer of dropout whose rate is 0 or 1."""

    def __init__(self, kind: type[nn.Module] = MutableDropout) -> None:
        super().__init__()
        self.dropout = kind(nni.choice("rate", [0.0, 1.0]))

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.dropout(inputs)
        return output


@pytest.mark.parametrize("kind", [MutableDropout, MutableDropout2d, MutableAlphaDropout])
def test_path_applies_the_sampled_rate(kind: type[nn.Module]) -> None:
    space = Rates(kind)
    path = as_path(space)
    inputs = torch.rand(2, 3, 4, 4) + 1

    path.sample = {"rate": 0.0}
    assert torch.equal(space(inputs), inputs)
    path.sample = {"rate": 1.0}
    assert not torch.isin(space(inputs), inputs).any()


def test_mixture_is_the_expected_output() -> None:
    space = Rates()
    weights = as_mixture(space)
    inputs = torch.rand(3, 2)

    output = space(inputs)

    # At rate 0 the output is the input, at rate 1 it is zero.
    assert torch.allclose(output, weights.weights("rate")[0] * inputs)


def test_evaluation_keeps_the_input() -> None:
    space = Rates()
    as_mixture(space)
    inputs = torch.rand(3, 2)

    assert torch.allclose(space.eval()(inputs), inputs)


def test_frozen_layer_has_the_sampled_rate() -> None:
    space = Rates()
    as_path(space)

    frozen = space.freeze({"rate": 1.0}).dropout

    assert type(frozen) is nn.Dropout
    assert frozen.p == 1.0


@pytest.mark.parametrize("layer", DROPOUTS)
def test_every_dropout_of_torch_has_rules(layer: type[nn.Module]) -> None:
    assert isinstance(slicing_of(layer), DropoutSlicing)
