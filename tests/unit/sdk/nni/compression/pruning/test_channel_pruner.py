from typing import Any, Final

import pytest
import torch
from torch import Tensor, nn

from nni.compression import TorchEvaluator
from nni.compression.base import ConfigListError, ModuleWrapper
from nni.compression.pruning import (
    ActivationAPoZRankPruner,
    ActivationMeanRankPruner,
    FPGMPruner,
    L1NormPruner,
    L2NormPruner,
    LevelPruner,
    LinearPruner,
    SlimPruner,
    TaylorFOWeightPruner,
)
from nni.compression.speedup import ModelSpeedup
from nni.compression.utils import fix_mask_conflict
from tests.unit.sdk.nni.compression.models import build, randomised

HALF = [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]
AWARE: Final = "dependency_aware"


class Sum(nn.Module):
    """Two convolutions of ten channels whose outputs are added."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 10, 3), nn.Conv2d(3, 10, 3)
        self.head = nn.Conv2d(10, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.head((self.conv1(image) + self.conv2(image)).relu())


IMAGE = torch.ones(2, 3, 5, 5)
TRAINED = (ActivationAPoZRankPruner, ActivationMeanRankPruner, TaylorFOWeightPruner)


def lost(masks: Any, name: str) -> list[int]:
    return (masks[name]["weight"].flatten(1).amax(1) == 0).nonzero().flatten().tolist()


def trained(model: nn.Module, inputs: Tensor, dummy_input: object = None) -> TorchEvaluator:
    def train(one: nn.Module, optimizer: Any, step: Any, _schedulers: Any, *limits: Any) -> None:
        for _ in range(limits[0]):
            optimizer.zero_grad()
            step(inputs, one).backward()
            optimizer.step()

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return TorchEvaluator(
        train, optimizer, lambda batch, one: one(batch).square().mean(), dummy_input=dummy_input
    )


@pytest.mark.claim("compression", 47)
def test_layers_that_are_added_lose_common_channels_by_their_summed_norm() -> None:
    model = randomised(Sum())
    config_list = [
        {"op_names": ["conv1"], "sparsity": 0.3},
        {"op_names": ["conv2"], "sparsity": 0.2},
    ]
    one, other = (
        layer.weight.detach().abs().sum((1, 2, 3)) for layer in (model.conv1, model.conv2)
    )

    pruner = L1NormPruner(model, config_list, mode=AWARE, dummy_input=IMAGE)
    _, masks = pruner.compress()

    common = (one + other).argsort()[:2].tolist()
    rest = [place for place in one.argsort().tolist() if place not in common]
    assert lost(masks, "conv2") == sorted(common)
    assert lost(masks, "conv1") == sorted([*common, rest[0]])


def test_a_set_with_a_layer_that_is_not_pruned_has_no_common_channels() -> None:
    model = randomised(Sum())
    norms = model.conv1.weight.detach().abs().sum((1, 2, 3))
    config_list = [{"op_names": ["conv1"], "sparsity": 0.3}]

    _, masks = L1NormPruner(model, config_list, mode=AWARE, dummy_input=IMAGE).compress()

    assert lost(masks, "conv1") == sorted(norms.argsort()[:3].tolist())


@pytest.mark.parametrize("name", ["residual", "squeeze-excite", "grouped", "dense"])
@pytest.mark.parametrize("kind", [L1NormPruner, L2NormPruner, FPGMPruner, *TRAINED])
def test_masks_of_each_pruner_have_no_conflict_and_make_the_model_smaller(
    kind: Any, name: str
) -> None:
    model, image = build(name)
    arguments = (trained(model, image), 1) if kind in TRAINED else ()
    pruner = kind(model, HALF, *arguments, mode=AWARE, dummy_input=image)

    _, masks = pruner.compress()

    pruner.unwrap_model()
    fixed: Any = fix_mask_conflict(masks, model, image)
    assert all(torch.equal(fixed[layer]["weight"], own["weight"]) for layer, own in masks.items())
    speedup = ModelSpeedup(model, image, masks)
    speedup.speedup_model()
    assert speedup.report is not None
    assert speedup.report.error < 1e-4
    assert speedup.report.kept == ()


def test_a_depthwise_convolution_that_is_not_pruned_does_not_stop_its_set() -> None:
    model, image = build("squeeze-excite")
    config_list = [{"op_names": ["stem.0", "expand"], "sparse_ratio": 0.5}]

    _, masks = L1NormPruner(model, config_list, mode=AWARE, dummy_input=image).compress()

    assert lost(masks, "stem.0") == lost(masks, "expand")
    assert len(lost(masks, "stem.0")) == 4


@pytest.mark.claim("compression", 48)
def test_groups_lose_equally_many_filters() -> None:
    model = nn.Sequential(nn.Conv2d(4, 8, 1, groups=2))
    model[0].weight.data = torch.arange(1.0, 9.0).reshape(8, 1, 1, 1).expand(8, 2, 1, 1).clone()

    _, masks = L1NormPruner(model, HALF, mode=AWARE, dummy_input=torch.zeros(1, 4, 2, 2)).compress()

    assert masks["0"]["bias"].tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_heads_of_attention_are_lost_as_a_whole() -> None:
    model, tokens = build("grouped-queries")
    names = [f"attention.{one}" for one in ("query", "key", "value")]
    config_list = [{"op_names": names, "sparse_ratio": 0.5}]

    _, masks = L1NormPruner(model, config_list, mode=AWARE, dummy_input=tokens).compress()

    key, value = lost(masks, names[1]), lost(masks, names[2])
    assert key == value
    assert key in ([0, 1, 2, 3], [4, 5, 6, 7])


def test_the_input_of_the_evaluator_serves_as_well() -> None:
    model = randomised(Sum())

    config_list = [{"op_names": ["conv1", "conv2"], "sparsity": 0.5}]

    pruner = L1NormPruner(model, config_list, trained(model, IMAGE, IMAGE), mode=AWARE)
    _, masks = pruner.compress()

    assert lost(masks, "conv1") == lost(masks, "conv2")


def test_a_schedule_masks_more_and_more_of_the_common_channels() -> None:
    model = randomised(Sum())
    config_list = [{"op_names": ["conv1", "conv2"], "sparsity": 0.6}]
    evaluator = trained(model, IMAGE)
    pruner = L1NormPruner(model, config_list, evaluator, mode=AWARE, dummy_input=IMAGE)

    _, masks = LinearPruner(pruner, interval_steps=1, total_times=3).compress(max_steps=3)

    assert lost(masks, "conv1") == lost(masks, "conv2")
    assert len(lost(masks, "conv1")) == 6


@pytest.mark.claim("compression", 49)
def test_the_mode_needs_inputs_and_pruners_of_single_elements_refuse_it() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))

    with pytest.raises(ValueError, match="mode 'dependency_aware' needs dummy_input"):
        L1NormPruner(model, HALF, mode=AWARE)
    with pytest.raises(ValueError, match="mode must be 'normal' or 'balance', got"):
        LevelPruner(model, HALF, mode=AWARE)  # type: ignore[arg-type]
    norms = [{"op_types": ["BatchNorm2d"], "sparse_ratio": 0.5}]
    with pytest.raises(ValueError, match="mode must be 'normal' or 'global', got"):
        SlimPruner(model, norms, trained(model, IMAGE), 1, mode=AWARE)
    assert not any(isinstance(one, ModuleWrapper) for one in model.modules())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"granularity": [1, 1]}, "is not the channels of a weight"),
        ({"granularity": "in_channel"}, "is not the channels of a weight"),
        ({"global_group_id": 1}, "has global_group_id; mode 'dependency_aware' needs a sparse_rat"),
        ({"dependency_group_id": 1}, "has dependency_group_id"),
        ({"sparse_ratio": None, "sparse_threshold": 0.1}, "has sparse_threshold"),
    ],
)
def test_settings_without_channels_of_a_layer_are_refused(entry: Any, message: str) -> None:
    model = Sum()

    with pytest.raises(ConfigListError, match=message):
        L1NormPruner(model, [{**HALF[0], **entry}], mode=AWARE, dummy_input=IMAGE)
    assert not any(isinstance(one, ModuleWrapper) for one in model.modules())


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="mode must be one of normal, global, dependency_aware"):
        L1NormPruner(Sum(), HALF, mode="local")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"evaluator must be an Evaluator.* got 'normal'"):
        L1NormPruner(Sum(), HALF, "normal")  # type: ignore[arg-type]


def test_inputs_that_the_model_cannot_take_leave_it_unwrapped() -> None:
    model = Sum()

    with pytest.raises(RuntimeError):
        L1NormPruner(model, HALF, mode=AWARE, dummy_input=torch.ones(1, 4, 5, 5))

    assert not any(isinstance(one, ModuleWrapper) for one in model.modules())


def test_global_mode_shares_the_ratio_of_an_entry() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 4))
    with torch.no_grad():
        model[0].weight.fill_(9)

    _, masks = L2NormPruner(
        model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}], mode="global"
    ).compress()

    assert lost(masks, "0") == []
    assert len(lost(masks, "1")) == 3
