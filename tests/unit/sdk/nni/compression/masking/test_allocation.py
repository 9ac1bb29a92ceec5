import logging
from typing import Any

import pytest
import torch
from torch import Tensor

from nni.compression.config.settings import PruningSettings
from nni.compression.masking.allocation import Scores, allocate


def scores(metric: list[float], elements: int = 0, **settings: Any) -> Scores:
    values = torch.tensor(metric)
    kept = torch.ones(len(metric), dtype=torch.bool)
    return Scores(values, kept, elements or len(metric), PruningSettings(**settings))


def masked(kept: Tensor) -> list[int]:
    return (~kept).nonzero().flatten().tolist()


@pytest.mark.claim("compression", 18)
def test_exactly_the_count_is_masked_even_with_ties() -> None:
    ties = scores([1.0] * 100, sparse_ratio=0.8)

    assert masked(allocate({"a": ties})["a"]) == list(range(80))


@pytest.mark.claim("compression", 22)
def test_a_count_that_rounds_to_zero_masks_nothing() -> None:
    assert allocate({"a": scores([1.0, 2.0, 3.0], sparse_ratio=0.3)})["a"].all()


def test_counts_are_truncated_with_their_rounding_error() -> None:
    kept = allocate({"a": scores([1.0] * 100, sparse_ratio=0.29)})["a"]

    assert int((~kept).sum()) == 28  # 100 * 0.29 is 28.999..., as in published results


def test_masked_and_nan_values_go_first_so_that_masks_are_nested() -> None:
    settings = PruningSettings(sparse_ratio=0.5)
    kept = torch.tensor([True, True, True, False])
    metric = torch.tensor([0.0, float("nan"), 1.0, 9.0])

    assert masked(allocate({"a": Scores(metric, kept, 4, settings)})["a"]) == [1, 3]


def test_a_threshold_masks_what_is_smaller_within_its_limits() -> None:
    values = [1.0, 2.0, 3.0, 4.0]

    assert masked(allocate({"a": scores(values, sparse_threshold=3.0)})["a"]) == [0, 1]
    most = scores(values, sparse_threshold=9.0, max_sparse_ratio=0.75)
    assert masked(allocate({"a": most})["a"]) == [0, 1, 2]
    least = scores(values, sparse_threshold=0.0, min_sparse_ratio=0.3)
    assert masked(allocate({"a": least})["a"]) == [0, 1]


def two_layers(ratio: float, **settings: Any) -> dict[str, Scores]:
    common = {"sparse_ratio": ratio, "global_group_id": 1, **settings}
    return {"a": scores([1.0, 4.0], 20, **common), "b": scores([2.0, 3.0], 60, **common)}


@pytest.mark.claim("compression", 27)
def test_a_global_group_weighs_channels_by_their_elements() -> None:
    kept = allocate(two_layers(0.5))

    assert (masked(kept["a"]), masked(kept["b"])) == ([0], [0])


@pytest.mark.claim("compression", 28)
def test_a_cap_that_makes_the_ratio_unreachable_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        kept = allocate(two_layers(0.6, max_sparse_ratio=0.5))

    assert (masked(kept["a"]), masked(kept["b"])) == ([0], [0])
    assert "global group 1 cannot reach the ratio 0.6" in caplog.text


@pytest.mark.claim("compression", 26)
def test_a_global_group_keeps_a_channel_of_each_layer() -> None:
    settings: dict[str, Any] = {"sparse_ratio": 0.5, "global_group_id": "bn"}
    small = scores([0.1] * 4, **settings)
    large = scores([float(i) for i in range(1, 13)], **settings)

    kept = allocate({"small": small, "large": large})

    assert masked(kept["small"]) == [0, 1, 2]
    assert len(masked(kept["large"])) == 5


def test_a_cap_of_one_lets_a_layer_vanish() -> None:
    settings: dict[str, Any] = {
        "sparse_ratio": 0.5,
        "global_group_id": "bn",
        "max_sparse_ratio": 1.0,
    }

    kept = allocate({"a": scores([0.1, 0.1], **settings), "b": scores([5.0, 6.0], **settings)})

    assert (masked(kept["a"]), masked(kept["b"])) == ([0, 1], [])


def test_a_minimum_holds_in_a_global_group() -> None:
    settings: dict[str, Any] = {
        "sparse_ratio": 0.5,
        "global_group_id": "bn",
        "min_sparse_ratio": 0.5,
    }

    kept = allocate({"a": scores([0.1, 0.1], **settings), "b": scores([5.0, 6.0], **settings)})

    assert (masked(kept["a"]), masked(kept["b"])) == ([0], [0])


def test_a_dependency_group_shares_the_mask_of_its_mean_metric() -> None:
    settings: dict[str, Any] = {"sparse_ratio": 0.5, "dependency_group_id": 1}

    kept = allocate({"a": scores([1.0, 4.0], **settings), "b": scores([9.0, 2.0], **settings)})

    assert masked(kept["a"]) == masked(kept["b"]) == [1]


def test_members_of_a_dependency_group_have_equally_many_channels() -> None:
    settings: dict[str, Any] = {"sparse_ratio": 0.5, "dependency_group_id": "add"}

    with pytest.raises(ValueError, match=r"dependency_group_id 'add' needs.*'a': 2, 'b': 3"):
        allocate({"a": scores([1.0] * 2, **settings), "b": scores([1.0] * 3, **settings)})


@pytest.mark.claim("compression", 48)
def test_blocks_lose_equally_many_channels() -> None:
    grouped = scores([float(i) for i in range(8)], sparse_ratio=0.5, internal_metric_block=2)

    assert masked(allocate({"a": grouped})["a"]) == [0, 1, 4, 5]


def test_a_number_of_blocks_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="internal_metric_block 2 does not divide the 3 channels"):
        allocate({"a": scores([1.0] * 3, sparse_ratio=0.5, internal_metric_block=2)})
