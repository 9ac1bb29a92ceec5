import pytest
import torch

from nni.compression.masking.metrics import (
    channel_means,
    distance_sums,
    first_order_contributions,
    nonzero_shares,
    norms,
)


@pytest.mark.claim("compression", 19)
def test_norms_of_order_1_and_2_rank_differently() -> None:
    filters = torch.tensor([[3.0, 0.0], [2.0, 2.0]])

    assert norms(filters, 1).argmin() == 0
    assert norms(filters, 2).argmin() == 1


@pytest.mark.claim("compression", 20)
def test_distances_are_summed_over_all_filters() -> None:
    filters = torch.tensor([[0.0], [1.0], [10.0], [0.5]])

    assert distance_sums(filters).tolist() == [11.5, 10.5, 28.5, 10.5]


def test_distances_equal_those_of_a_loop() -> None:
    blocks = torch.randn(3, 2, 5, generator=torch.Generator().manual_seed(0))
    flat = blocks.reshape(6, 5)

    expected = [sum(float((one - other).norm()) for other in flat) for one in flat]

    torch.testing.assert_close(distance_sums(blocks).flatten(), torch.tensor(expected))


@pytest.mark.claim("compression", 23)
def test_a_channel_without_activations_is_smallest() -> None:
    activations = torch.relu(torch.tensor([[[-1.0, -2.0], [1.0, -1.0]], [[-3.0, 0.0], [2.0, 3.0]]]))

    assert nonzero_shares(activations).tolist() == [0.0, 0.75]


@pytest.mark.claim("compression", 23)
def test_channels_are_ranked_by_their_mean() -> None:
    activations = torch.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1).expand(4, 3, 2, 2)

    assert channel_means(activations).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.claim("compression", 24)
def test_contributions_are_squared_products() -> None:
    weight = torch.tensor([[1.0, 2.0]], dtype=torch.float16)
    gradient = torch.tensor([[3.0, -1.0]], dtype=torch.float16)

    found = first_order_contributions(weight, gradient)

    assert found.tolist() == [[9.0, 4.0]]
    assert found.dtype == torch.float32
