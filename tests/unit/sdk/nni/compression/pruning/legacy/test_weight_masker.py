from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base import ModuleWrapper
from nni.compression.config.settings import PruningSettings
from nni.compression.pruning.legacy.weight_masker import StructuredWeightMasker


class NormMasker(StructuredWeightMasker):
    def get_channel_sum(self, wrapper: ModuleWrapper, _wrapper_idx: int | None) -> Tensor:
        return wrapper.parameter("weight").detach().abs().flatten(1).sum(1)


def wrapped(norms: list[float], name: str = "conv", *, bias: bool = True) -> ModuleWrapper:
    layer = nn.Conv2d(1, len(norms), 1, bias=bias)
    layer.weight.data = torch.tensor(norms).reshape(-1, 1, 1, 1)
    return ModuleWrapper(layer, name, {"weight": PruningSettings(sparse_ratio=0.5)})


def lost(masks: Any) -> list[int]:
    return (masks["weight_mask"].flatten(1).amax(1) == 0).nonzero().flatten().tolist()


@pytest.mark.claim("compression", 21)
@pytest.mark.parametrize(("preserve_round", "kept"), [(4, 28), (1, 26), (64, 32)])
def test_channels_that_stay_are_rounded_up_to_a_multiple(preserve_round: int, kept: int) -> None:
    wrapper = wrapped([float(place) for place in range(32)])

    masks = NormMasker(nn.ReLU(), None, preserve_round).calc_mask(0.2, wrapper)

    assert int(masks["bias_mask"].sum()) == kept
    assert lost(masks) == list(range(32 - kept))


def test_the_smallest_channels_are_masked_with_their_bias() -> None:
    masks = NormMasker(nn.ReLU(), None).calc_mask(0.5, wrapped([3.0, 1.0, 2.0, 4.0]), 0)

    assert lost(masks) == [1, 2]
    assert masks["bias_mask"].tolist() == [1, 0, 0, 1]


def test_a_layer_without_bias_has_no_mask_of_it() -> None:
    masker = NormMasker(nn.ReLU(), None)

    assert masker.calc_mask(0.5, wrapped([3.0, 1.0], bias=False))["bias_mask"] is None
    assert masker.calc_mask(0.1, wrapped([3.0, 1.0]))["weight_mask"].all()


def test_dependent_layers_lose_common_channels_first() -> None:
    first = wrapped([1.0, 9.0, 2.0, 9.0], "first")
    second = wrapped([1.0, 1.0, 9.0, 9.0], "second")

    masks = NormMasker(nn.ReLU(), None, dependency_aware=True).calc_mask(
        [0.5, 0.25], [first, second], [0, 1], groups=[1, 1]
    )

    assert {name: lost(one) for name, one in masks.items()} == {"first": [0, 2], "second": [0]}


def test_groups_lose_equally_many_common_channels() -> None:
    wrapper = wrapped([1.0, 2.0, 8.0, 9.0], "grouped")

    masks = NormMasker(nn.ReLU(), None).calc_mask([0.5], [wrapper], groups=[2])

    assert lost(masks["grouped"]) == [0, 2]


def test_a_masker_may_choose_channels_itself() -> None:
    class FirstMasker(StructuredWeightMasker):
        def get_mask(self, base_mask: Any, *arguments: Any, **_named: Any) -> Any:
            base_mask["weight_mask"][: arguments[1]] = 0
            return base_mask

    masks = FirstMasker(nn.ReLU(), None).calc_mask(0.5, wrapped([3.0, 1.0]))

    assert lost(masks) == [0]


def test_a_masker_without_importance_says_what_is_missing() -> None:
    masker = StructuredWeightMasker(nn.ReLU(), None)

    with pytest.raises(TypeError, match=r"has no get_channel_sum for conv .*implement it, or get_"):
        masker.calc_mask(0.5, wrapped([3.0, 1.0]))
    with pytest.raises(ValueError, match="preserve_round must be >= 1, got 0"):
        StructuredWeightMasker(nn.ReLU(), None, 0)
