import pytest
import torch
from torch import Tensor

from nni.compression.masking.balance import balanced_kept, tile_sizes


def test_missing_sizes_are_one_at_the_front() -> None:
    assert tile_sizes((8, 16, 3, 3), (4, 1, 1)) == (1, 4, 1, 1)
    assert tile_sizes((8, 16), (2, 4)) == (2, 4)


def test_tiles_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"balance_gran \[4\] does not divide the shape \(2, 6\)"):
        tile_sizes((2, 6), (4,))
    with pytest.raises(ValueError, match="has more sizes than the shape"):
        tile_sizes((8,), (2, 4))


def slow(metric: Tensor, sizes: tuple[int, int], count: int) -> Tensor:
    """Mask the smallest `count` elements of each tile, one tile after the other."""
    kept = torch.ones_like(metric, dtype=torch.bool)
    for row in range(0, metric.shape[0], sizes[0]):
        for column in range(0, metric.shape[1], sizes[1]):
            tile = (slice(row, row + sizes[0]), slice(column, column + sizes[1]))
            part = kept[tile].flatten().clone()
            part[metric[tile].flatten().sort(stable=True).indices[:count]] = False
            kept[tile] = part.reshape(sizes)
    return kept


@pytest.mark.parametrize(
    ("sizes", "ratio", "count"), [((1, 4), 0.5, 2), ((2, 2), 0.75, 3), ((1, 8), 0.3, 2)]
)
def test_every_tile_loses_its_smallest_elements(
    sizes: tuple[int, int], ratio: float, count: int
) -> None:
    metric = torch.rand(4, 16, generator=torch.Generator().manual_seed(0))

    kept = balanced_kept(metric, torch.ones_like(metric, dtype=torch.bool), sizes, ratio)

    assert torch.equal(kept, slow(metric, sizes, count))


def test_masked_elements_go_first_and_ties_by_lower_index() -> None:
    metric = torch.tensor([[1.0, 1.0, 1.0, 9.0]])
    kept = torch.tensor([[True, True, True, False]])

    assert balanced_kept(metric, kept, (1, 4), 0.5).tolist() == [[False, True, True, False]]


def test_nan_counts_as_smallest() -> None:
    metric = torch.tensor([[1.0, torch.nan, 2.0, 3.0]])

    assert balanced_kept(metric, torch.ones(1, 4, dtype=torch.bool), (1, 4), 0.25).tolist() == [
        [True, False, True, True]
    ]
