import numpy as np
import pytest
import torch
from torch import Tensor

from nni.compression.masking.shared_channels import ChannelScores, shared_channels


def scores(
    metric: list[float] | Tensor,
    ratio: float,
    units: list[int] | None = None,
    lost: tuple[int, ...] = (),
) -> ChannelScores:
    values = torch.as_tensor(metric, dtype=torch.float32)
    kept = torch.ones(len(values), dtype=torch.bool)
    kept[list(lost)] = False
    return ChannelScores(values, kept, np.array(units or range(len(values))), ratio)


def masked(kept: Tensor) -> list[int]:
    return (~kept).nonzero().flatten().tolist()


@pytest.mark.claim("compression", 47)
def test_added_layers_lose_common_channels_and_then_their_own() -> None:
    generator = torch.Generator().manual_seed(0)
    one, other = torch.rand(10, generator=generator), torch.rand(10, generator=generator)

    first, second = shared_channels([scores(one, 0.3), scores(other, 0.2)])

    common = (one + other).argsort()[:2].tolist()
    assert masked(second) == sorted(common)
    rest = [place for place in one.argsort().tolist() if place not in common]
    assert masked(first) == sorted([*common, rest[0]])


@pytest.mark.claim("compression", 48)
def test_each_part_loses_equally_many_common_channels() -> None:
    (kept,) = shared_channels([scores([float(one) for one in range(8)], 0.5)], parts=2)

    assert masked(kept) == [0, 1, 4, 5]


def test_a_ratio_of_zero_masks_nothing_in_common() -> None:
    first, second = shared_channels([scores([3.0, 1, 2, 4], 0.5), scores([1.0] * 4, 0.0)])

    assert masked(first) == [1, 2]
    assert masked(second) == []


def test_without_common_channels_each_layer_loses_its_own() -> None:
    kept = shared_channels([scores([1.0, 2, 3, 4], 0.5), scores([4.0, 3, 2, 1], 0.5)], 1, 0.0)

    assert [masked(one) for one in kept] == [[0, 1], [2, 3]]


def test_units_of_several_channels_go_as_a_whole() -> None:
    heads = [0, 0, 1, 1, 2, 2]

    query, wide = shared_channels(
        [scores([5.0, 5, 1, 1, 3, 3], 0.5, heads), scores([1.0, 0, 2], 0.4, [0, 1, 2])]
    )

    assert masked(wide) == [1]
    assert masked(query) == [2, 3, 4]  # the third of six channels is a choice of its own


def test_layers_may_share_a_part_of_their_channels() -> None:
    first, second, whole = shared_channels(
        [
            scores([9.0, 1], 0.5, [0, 1]),
            scores([9.0, 2], 0.5, [2, 3]),
            scores([1.0, 1, 1, 1], 0.5),
        ]
    )

    assert [masked(first), masked(second), masked(whole)] == [[1], [1], [1, 3]]


def test_what_was_masked_stays_masked() -> None:
    layers = [scores([9.0, 1, 2, 3], 0.5, lost=(0, 3)), scores([1.0, 2, 3, 9], 0.25, lost=(0,))]

    first, second = shared_channels(layers)

    assert masked(first) == [0, 3]
    assert masked(second) == [0]


def test_own_losses_of_a_round_before_leave_no_room_for_new_common_channels() -> None:
    layers = [scores([9.0, 8, 1, 1], 0.5, lost=(0, 1)), scores([9.0, 9, 1, 1], 0.5)]

    first, second = shared_channels(layers)

    assert masked(first) == [0, 1]
    assert masked(second) == [0, 1]


def test_nan_counts_as_smallest_and_ties_go_to_the_lower_index() -> None:
    (kept,) = shared_channels([scores([1.0, 1.0, float("nan"), 1.0], 0.5)])

    assert masked(kept) == [0, 2]
