"""Operators of cells keep the channels, and halve the size with stride 2."""

import pytest
import torch

from nni.nas.hub.pytorch.nds_operators import OPERATORS, DropPath, FactorizedReduce


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(("stride", "size"), [(1, 9), (2, 5)])
def test_operator_has_the_size_of_its_stride(name: str, stride: int, size: int) -> None:
    operator = OPERATORS[name](4, stride)

    assert operator(torch.randn(2, 4, 9, 9)).shape == (2, 4, size, size)


@pytest.mark.parametrize(("given", "wanted"), [(8, 8), (8, 4), (7, 4), (16, 4)])
def test_projection_has_the_wanted_size(given: int, wanted: int) -> None:
    reduce = FactorizedReduce(3, 5)

    assert reduce(torch.randn(2, 3, given, given), wanted).shape == (2, 5, wanted, wanted)


def test_halves_of_the_channels_see_even_and_odd_positions() -> None:
    reduce = FactorizedReduce(1, 2).eval()
    torch.nn.init.ones_(reduce.conv.weight)
    inputs = torch.arange(16.0).reshape(1, 1, 4, 4)

    found = reduce(inputs, 2)

    # The statistics of a new normalization are 0 and 1; epsilon is 1e-5.
    expected = torch.tensor([[[0.0, 2], [8, 10]], [[5, 7], [13, 15]]])
    assert torch.allclose(found[0], expected, rtol=1e-4)


def test_dropped_samples_are_zero_and_the_others_scaled() -> None:
    torch.manual_seed(0)
    output = DropPath(0.5)(torch.ones(64, 2, 3))

    per_sample = output.flatten(1)
    assert set(per_sample.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(per_sample.amin(1), per_sample.amax(1))


def test_nothing_is_dropped_in_evaluation() -> None:
    inputs = torch.ones(4, 2)

    assert DropPath(0.9).eval()(inputs) is inputs
    assert DropPath(0.0)(inputs) is inputs


@pytest.mark.parametrize("probability", [-0.1, 1.0])
def test_probability_has_a_range(probability: float) -> None:
    with pytest.raises(ValueError, match=r"drop_prob must be in \[0, 1\)"):
        DropPath(probability)
