import pytest
import torch
from torch import Tensor

from nni.compression.base.numerics import IntegerType, scale_and_zero_point, simulated
from nni.compression.quantization.histogram import BINS, best_range, merged, middles

UINT3 = IntegerType(3, signed=False)
ZERO = torch.zeros(())


def histogram_of(*batches: Tensor, bins: int = BINS) -> tuple[Tensor, Tensor, Tensor]:
    found = torch.zeros(bins), ZERO, ZERO
    for batch in batches:
        found = merged(*found, batch)
    return found


def normal(seed: int) -> Tensor:
    return torch.randn(10_000, generator=torch.Generator().manual_seed(seed))


def test_counts_of_several_batches_in_one_range() -> None:
    counts, low, high = histogram_of(torch.tensor([0.1, 3.9, 4.0]), torch.tensor([0.0]), bins=4)

    assert counts.tolist() == [2, 0, 0, 2]
    assert (float(low), float(high)) == (0, 4)


def test_a_wider_batch_spreads_the_counts() -> None:
    counts, low, high = histogram_of(
        torch.tensor([0.0, 1.0, 2.0]), torch.tensor([-2.0, 6.0]), bins=4
    )

    assert (float(low), float(high)) == (-2, 6)
    assert counts.tolist() == [1, 3, 0, 1]
    assert middles(counts, low, high).tolist() == [-1, 1, 3, 5]


def test_other_numbers_than_finite_ones_do_not_count() -> None:
    first = histogram_of(torch.tensor([1.0, 2.0]))

    again = merged(*first, torch.tensor([float("nan"), float("inf")]))

    assert all(map(torch.equal, again, first))


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_the_range_errs_less_than_the_widest_one(shift: float) -> None:
    values = normal(0) + shift
    counts, low, high = histogram_of(values)

    chosen = best_range(counts, low, high, UINT3, "affine")

    errors = [
        (simulated(values, *scale_and_zero_point(*ends, UINT3, "affine"), UINT3) - values)
        .square()
        .sum()
        for ends in ((low, high), chosen)
    ]
    assert errors[1] < 0.7 * errors[0]


def test_equal_values_keep_their_range() -> None:
    counts, low, high = histogram_of(torch.full((100,), 2.0))

    assert [float(one) for one in best_range(counts, low, high, UINT3, "affine")] == [0, 2]
