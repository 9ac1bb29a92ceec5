import numpy as np
import torch
from torch import nn

from nni.compression.speedup import find_dependencies
from nni.compression.speedup.dependency import (
    NORMS,
    LayerChannels,
    group_counts,
    is_depthwise,
    layer_channels,
    parts_of,
    shared_sets,
)
from tests.unit.sdk.nni.compression.models import build


def layers_of(name: str) -> dict[str, LayerChannels]:
    model, inputs = build(name)
    return {one.name: one for one in layer_channels(model, find_dependencies(model, inputs))}


def test_layers_that_are_added_have_the_same_units_and_others_have_not() -> None:
    layers = layers_of("residual")

    assert np.array_equal(layers["stem.0"].units, layers["first.1"].units)
    assert np.array_equal(layers["stem.0"].units, layers["second.1"].units)
    assert np.array_equal(layers["first.0.0"].input_units, layers["stem.0"].units)
    assert not np.isin(layers["first.0.0"].units, layers["stem.0"].units).any()


def test_layers_are_in_the_order_of_the_run() -> None:
    assert list(layers_of("residual")) == [
        "stem.0", "first.0.0", "first.1", "second.0.0", "second.1", "head"
    ]  # fmt: skip


def test_heads_of_attention_are_one_unit_each_for_query_key_and_value() -> None:
    layers = layers_of("grouped-queries")
    query, key, value = (layers[f"attention.{one}"].units for one in ("query", "key", "value"))

    assert len(np.unique(key)) == len(np.unique(value)) == 2
    assert np.array_equal(key, value)
    assert set(query.tolist()) == set(key.tolist())


def test_a_layer_that_did_not_run_shares_no_channel() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    model.add_module("unused", nn.Identity())
    model.unused.add_module("layer", nn.Linear(4, 3))

    layers = layer_channels(model, find_dependencies(model, torch.zeros(1, 2)))

    assert [one.name for one in layers] == ["0", "1", "unused.layer"]
    units = np.concatenate([one.units for one in layers])
    assert len(np.unique(units)) == len(units) == 8


def test_the_channels_of_a_grouped_convolution_of_the_image_are_known() -> None:
    model = nn.Sequential(nn.Conv2d(4, 8, 1, groups=2), nn.Conv2d(8, 4, 1))

    first, second = layer_channels(model, find_dependencies(model, torch.zeros(1, 4, 2, 2)))

    assert np.array_equal(first.units, second.input_units)


def test_norms_have_the_units_of_the_layers_before_them() -> None:
    model, image = build("residual")
    dependencies = find_dependencies(model, image)

    norms = {one.name: one for one in layer_channels(model, dependencies, NORMS)}
    layers = {one.name: one for one in layer_channels(model, dependencies)}

    assert np.array_equal(norms["stem.1"].units, layers["stem.0"].units)


def test_group_counts_are_those_of_the_layer_and_its_readers() -> None:
    layers = list(layers_of("grouped").values())

    counts = group_counts(layers)

    assert counts["stem.0"] == [1, 4]
    assert counts["grouped.0"] == [4]
    assert counts["transposed"] == [1, 2]
    assert parts_of(counts, ["stem.0", "transposed"]) == 4
    assert parts_of(counts, []) == 1


def test_a_depthwise_convolution_is_one_group() -> None:
    layers = layers_of("squeeze-excite")

    assert layers["depthwise.0"].depthwise
    assert group_counts(list(layers.values()))["stem.0"] == [1]
    assert not is_depthwise(nn.Conv2d(1, 4, 1))


def test_sets_merge_over_common_members_in_any_order() -> None:
    units = {
        name: np.array(own) for name, own in {"a": [1], "b": [2], "c": [3, 2], "d": [1, 3]}.items()
    }

    assert shared_sets(units) == [["a", "b", "c", "d"]]
    assert shared_sets({}) == []
