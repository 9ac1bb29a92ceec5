import pytest
import torch
from torch import Tensor

from nni.compression.pruning.legacy.metrics_calculators import (
    APoZRankMetricsCalculator,
    DistMetricsCalculator,
    MeanRankMetricsCalculator,
    MetricsCalculator,
    MultiDataNormMetricsCalculator,
    NormMetricsCalculator,
    rows_of,
)


def weight() -> Tensor:
    return torch.randn(3, 2, 2, 4, generator=torch.Generator().manual_seed(0))


def found(calculator: MetricsCalculator, data: object) -> Tensor:
    return calculator.calculate_metrics({"layer": data})["layer"]


@pytest.mark.parametrize("p", [1, 2, 3, None])
@pytest.mark.parametrize("dim", [0, 1, [0, 1], [1, 0]])
def test_norms_are_those_of_the_parts(dim: int | list[int], p: float | None) -> None:
    dims = [dim] if isinstance(dim, int) else dim
    one = weight()

    norms = found(NormMetricsCalculator(dim, p), one)

    assert norms.shape == tuple(one.shape[axis] for axis in dims)
    for index in torch.cartesian_prod(*(torch.arange(size) for size in norms.shape)).view(
        -1, len(dims)
    ):
        place = index.tolist()
        part = one
        for axis, position in sorted(zip(dims, place, strict=True), reverse=True):
            part = part.select(axis, position)
        order = 2 if p is None else p
        assert torch.isclose(norms[tuple(place)], part.abs().pow(order).sum().pow(1 / order))


@pytest.mark.parametrize("p", [1, 2, None])
def test_without_a_dimension_norms_are_the_absolute_values(p: float | None) -> None:
    assert torch.allclose(found(NormMetricsCalculator(None, p), weight()), weight().abs())


def test_several_tensors_are_added_before_the_norm() -> None:
    data = [torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 1.0]])]

    assert found(MultiDataNormMetricsCalculator(0, 1), data).tolist() == [5.0]


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("dim", [0, 1, [0, 1]])
def test_distances_are_summed_over_all_other_parts(dim: int | list[int], p: float) -> None:
    one = weight()
    rows = rows_of(one, [dim] if isinstance(dim, int) else dim)
    parts = rows.flatten(0, -2)
    expected = torch.stack(
        [sum((a - b).abs().pow(p).sum() ** (1 / p) for b in parts) for a in parts]
    )

    distances = found(DistMetricsCalculator(p, dim), one)

    assert distances.shape == rows.shape[:-1]
    assert torch.allclose(distances.flatten(), expected, atol=1e-4)


@pytest.mark.claim("compression", 20)
def test_distances_of_filters_of_one_element() -> None:
    filters = torch.tensor([0.0, 1.0, 10.0, 0.5]).reshape(4, 1, 1, 1)

    assert found(DistMetricsCalculator(2, 0), filters).tolist() == [11.5, 10.5, 28.5, 10.5]


@pytest.mark.claim("compression", 23)
def test_activations_are_ranked_by_channel_over_all_batches() -> None:
    batches = [
        torch.tensor([[[0.0, 0.0], [1.0, 0.0], [2.0, 4.0]]]),
        torch.tensor([[[0.0, 0.0], [3.0, 4.0], [3.0, 3.0]]]),
    ]

    assert found(APoZRankMetricsCalculator(), batches).tolist() == [0.0, 0.75, 1.0]
    assert found(MeanRankMetricsCalculator(), batches).tolist() == [0.0, 2.0, 3.0]
    assert found(MeanRankMetricsCalculator(), [torch.ones(2, 5)]).shape == (5,)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="p must be > 0, got 0"):
        DistMetricsCalculator(0, 0)
    for kind in (APoZRankMetricsCalculator, MeanRankMetricsCalculator):
        with pytest.raises(ValueError, match="dim must be 1, the channels of activations, got 0"):
            kind(0)
