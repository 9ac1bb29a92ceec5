import json
import logging
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.base import ConfigListError
from nni.compression.pruning import L1NormPruner
from nni.compression.utils import (
    auto_set_denpendency_group_ids,
    auto_set_dependency_group_ids,
    fix_mask_conflict,
)
from tests.unit.sdk.nni.compression.models import build
from tests.unit.sdk.nni.compression.resnet import IMAGE, resnet18

HALF = [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]


def test_layers_that_are_added_get_one_group_and_lose_the_same_channels() -> None:
    entries: Any = auto_set_dependency_group_ids(resnet18(), HALF, IMAGE)

    _, masks = L1NormPruner(resnet18(), json.loads(json.dumps(entries))).compress()

    groups = {
        one["op_names"][0]: one["target_settings"]["weight"].get("dependency_group_id")
        for one in entries
    }
    assert groups["conv1"] == groups["layer1.0.conv2"] == groups["layer1.1.conv2"]
    assert groups["layer1.0.conv1"] is None
    fixed: Any = fix_mask_conflict(masks, resnet18(), IMAGE)
    assert all(torch.equal(fixed[name]["weight"], own["weight"]) for name, own in masks.items())
    assert all(float(own["weight"].mean()) == 0.5 for own in masks.values())


def test_channels_of_groups_get_a_number_of_blocks() -> None:
    model, image = build("grouped")

    entries: Any = auto_set_dependency_group_ids(model, HALF, image)

    blocks = {
        one["op_names"][0]: one["target_settings"]["weight"].get("internal_metric_block")
        for one in entries
    }
    assert blocks == {"stem.0": 4, "grouped.0": 4}


def test_other_targets_keep_their_settings() -> None:
    config_list = [
        {"op_names": ["fc"], "sparse_ratio": 0.25, "granularity": [1, 4]},
        {"op_types": ["Conv2d"], "sparse_ratio": 0.5, "max_sparse_ratio": 0.75},
    ]
    model, image = build("plain")

    entries: Any = auto_set_dependency_group_ids(model, config_list, image)

    assert [one["op_names"] for one in entries] == [["conv1.0"], ["conv2.0"], ["fc"]]
    assert entries[2]["target_settings"]["weight"] == {
        "sparse_ratio": 0.25,
        "granularity": [1, 4],
        "apply_method": "mul",
    }
    weight = entries[0]["target_settings"]["weight"]
    assert weight["max_sparse_ratio"] == 0.75
    bias = entries[0]["target_settings"]["bias"]
    assert bias["align"] == {"target_name": "weight", "dims": [0]}


def test_different_settings_of_dependent_layers_are_refused() -> None:
    config_list = [{"op_names": ["conv1"], "sparse_ratio": 0.25}, *HALF]

    with pytest.raises(ConfigListError, match=r"different settings for conv1 and layer1\.0\.conv2"):
        auto_set_dependency_group_ids(resnet18(), config_list, IMAGE)


def test_dependent_layers_that_are_not_pruned_are_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        auto_set_dependency_group_ids(
            resnet18(), [{"op_names": ["conv1"], "sparse_ratio": 0.5}], IMAGE
        )

    assert "channels of conv1 stay for layer1.0.conv2, layer1.1.conv2" in caplog.text


def test_the_name_of_nni_is_the_same_function() -> None:
    assert auto_set_denpendency_group_ids is auto_set_dependency_group_ids


def test_a_wrapped_model_is_refused() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1))
    L1NormPruner(model, HALF)

    with pytest.raises(ValueError, match="is wrapped by a pruner"):
        auto_set_dependency_group_ids(model, HALF, IMAGE)
