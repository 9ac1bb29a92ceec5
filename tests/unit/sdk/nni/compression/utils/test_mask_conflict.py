from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.pruning import (
    FPGMPruner,
    L1NormPruner,
    L2NormPruner,
)
from nni.compression.speedup import ModelSpeedup
from nni.compression.utils import (
    ChannelMaskConflict,
    GroupMaskConflict,
    fix_channel_mask_conflict,
    fix_group_mask_conflict,
    fix_mask_conflict,
)
from tests.unit.sdk.nni.compression.models import build, randomised
from tests.unit.sdk.nni.compression.resnet import IMAGE, resnet18

HALF = [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]


def filters(kept: list[int], like: Any) -> dict[str, Tensor]:
    """Return masks that keep some filters of a convolution, with their biases."""
    weight = torch.zeros_like(like.weight)
    weight[kept] = 1
    masks = {"weight": weight}
    if like.bias is not None:
        masks["bias"] = weight.flatten(1).amax(1)
    return masks


def kept(mask: Any) -> list[int]:
    return mask.flatten(1).any(1).nonzero().flatten().tolist()


class Sum(nn.Module):
    """Two convolutions whose outputs are added, and one that reads the sum."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Conv2d(2, 4, 1), nn.Conv2d(2, 4, 1)
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.head((self.one(image) + self.other(image)).relu())


IMAGES = torch.ones(1, 2, 3, 3)


def test_added_outputs_keep_the_union_of_their_channels_with_the_bias() -> None:
    model = Sum()
    masks = {"one": filters([0, 1], model.one), "other": filters([1, 2], model.other)}

    fixed: Any = fix_channel_mask_conflict(masks, model, IMAGES)

    for name in ("one", "other"):
        assert kept(fixed[name]["weight"]) == [0, 1, 2]
        assert fixed[name]["bias"].tolist() == [1, 1, 1, 0]
    assert kept(masks["one"]["weight"]) == [0, 1]  # the given masks stay


def test_a_layer_without_a_mask_keeps_all_channels_of_its_set() -> None:
    model = Sum()

    fixed: Any = fix_mask_conflict({"one": filters([3], model.one)}, model, IMAGES)

    assert kept(fixed["one"]["weight"]) == [0, 1, 2, 3]
    assert set(fixed) == {"one"}


@pytest.mark.claim("compression", 75)
def test_the_smaller_model_of_repaired_masks_keeps_the_union_and_runs() -> None:
    torch.manual_seed(0)
    model = randomised(Sum())
    masks = {"one": filters([0, 1], model.one), "other": filters([1, 2], model.other)}

    smaller = ModelSpeedup(model, IMAGES, fix_mask_conflict(masks, model, IMAGES)).speedup_model()

    assert smaller.one.out_channels == smaller.other.out_channels == smaller.head.in_channels == 3
    assert smaller(IMAGES).shape == (1, 2, 3, 3)


def test_input_channels_of_layers_that_read_the_same_tensor_are_repaired() -> None:
    model = Sum()
    one = torch.ones(4, 2, 1, 1)
    one[:, 0] = 0

    fixed: Any = fix_channel_mask_conflict({"one": {"weight": one}}, model, IMAGES)
    both = {"one": {"weight": one}, "other": {"weight": one}}

    assert fixed["one"]["weight"].all()
    assert not fix_channel_mask_conflict(both, model, IMAGES)["one"]["weight"][:, 0].any()


def test_masks_of_batch_norms_are_repaired() -> None:
    model = resnet18()
    names = ["bn1", "layer1.0.bn2", "layer1.1.bn2"]
    masks = {name: {one: torch.ones(8) for one in ("weight", "bias")} for name in names}
    for place, name in enumerate(names):
        masks[name]["weight"][: place + 1] = 0
        masks[name]["bias"][: place + 1] = 0

    fixed = ChannelMaskConflict(masks, model, IMAGE).fix_mask()

    for name in names:
        assert fixed[name]["weight"].tolist() == fixed[name]["bias"].tolist() == [0, *[1] * 7]


def test_a_depthwise_convolution_without_a_mask_follows() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 1), nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 2, 1))

    fixed: Any = fix_mask_conflict({"0": filters([1, 3], model[0])}, model, IMAGES)

    assert kept(fixed["0"]["weight"]) == [1, 3]


def test_groups_lose_as_few_filters_as_the_one_that_loses_least() -> None:
    model = nn.Sequential(nn.Conv2d(2, 12, 1), nn.Conv2d(12, 12, 1, groups=3))
    masks = {"0": filters([1, 2, 3, 7, 8, 9, 10], model[0])}

    fixed: Any = fix_group_mask_conflict(masks, model, IMAGES)

    # Of each group of four filters the first lost one stays lost.
    assert kept(fixed["0"]["weight"]) == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert fixed["0"]["bias"].nonzero().flatten().tolist() == kept(fixed["0"]["weight"])


def test_a_group_that_is_lost_as_a_whole_stays_lost() -> None:
    model = nn.Sequential(nn.Conv2d(4, 8, 1, groups=2))

    fixed = GroupMaskConflict(
        {"0": filters([4, 6, 7], model[0])}, model, torch.ones(1, 4, 2, 2)
    ).fix_mask()

    assert kept(fixed["0"]["weight"]) == [4, 6, 7]


def test_transposed_grouped_filters_are_on_the_second_axis() -> None:
    model = nn.Sequential(nn.ConvTranspose2d(4, 8, 1, groups=2, bias=False))
    mask = torch.ones(4, 4, 1, 1)
    mask[:2, 1] = 0  # filter 1 of the first group

    fixed: Any = fix_group_mask_conflict({"0": {"weight": mask}}, model, torch.ones(1, 4, 2, 2))

    assert fixed["0"]["weight"].all()


def test_single_elements_are_no_conflict() -> None:
    model = Sum()
    mask = torch.ones(4, 2, 1, 1)
    mask[0, 0] = mask[2, 1] = 0
    masks = {"one": {"weight": mask, "bias": None}}

    fixed: Any = fix_mask_conflict(masks, model, IMAGES)

    assert torch.equal(fixed["one"]["weight"], mask)
    assert fixed["one"]["bias"] is None


@pytest.mark.parametrize("name", ["residual", "dense", "squeeze-excite", "grouped", "shuffled"])
def test_a_second_repair_changes_nothing(name: str) -> None:
    model, image = build(name)
    _, masks = L2NormPruner(model, HALF).compress()
    plain = build(name)[0]

    once: Any = fix_mask_conflict(masks, plain, image)
    twice: Any = fix_mask_conflict(once, plain, image)

    for layer, own in once.items():
        for target, mask in own.items():
            assert torch.equal(twice[layer][target], mask)
            assert not (masks[layer][target].bool() & ~mask.bool()).any()  # none is masked anew


@pytest.mark.claim("compression", 50)
@pytest.mark.parametrize("kind", [L1NormPruner, L2NormPruner, FPGMPruner])
def test_masks_of_dependent_layers_have_no_conflict(kind: Any) -> None:
    model = resnet18()
    pruner = kind(model, HALF, mode="dependency_aware", dummy_input=IMAGE)
    _, masks = pruner.compress()
    pruner.unwrap_model()

    fixed: Any = fix_mask_conflict(masks, model, IMAGE)

    for layer, own in masks.items():
        assert float(own["weight"].mean()) == 0.5
        assert torch.equal(fixed[layer]["weight"], own["weight"])


def test_masks_may_be_a_file(tmp_path: Path) -> None:
    model = Sum()
    torch.save({"one": filters([3], model.one)}, tmp_path / "masks.pth")

    assert kept(fix_mask_conflict(tmp_path / "masks.pth", model, IMAGES)["one"]["weight"]) == [
        *range(4)
    ]
    with pytest.raises(FileNotFoundError, match=r"none\.pth does not exist"):
        fix_mask_conflict(tmp_path / "none.pth", model, IMAGES)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({}, "masks must hold a mask"),
        ({"two": {"weight": torch.ones(1)}}, "module 'two', which the model does not have"),
        ({"one": {"weight": torch.ones(1)}}, r"shape \(1,\), but the parameter has \(4, 2, 1, 1\)"),
    ],
)
def test_masks_that_do_not_fit_are_refused(masks: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fix_mask_conflict(masks, Sum(), IMAGES)


class Joined(nn.Module):
    """Six and two channels, joined and convolved in four groups of two."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Conv2d(2, 6, 1), nn.Conv2d(2, 2, 1)
        self.grouped = nn.Conv2d(8, 8, 1, groups=4)

    def forward(self, image: Tensor) -> Tensor:
        return self.grouped(torch.cat([self.wide(image), self.narrow(image)], 1))


def test_channels_that_are_no_multiple_of_the_groups_fall_into_fewer_parts() -> None:
    model = Joined()

    fixed: Any = fix_mask_conflict({"wide": filters([1, 3, 5], model.wide)}, model, IMAGES)

    # Two parts of three lose one filter each: what four groups share with six channels.
    assert kept(fixed["wide"]["weight"]) == [1, 2, 3, 5]
