from typing import Any

import pytest

from nni.compression.config.selection import ModuleInfo
from nni.compression.scheduling.layer_groups import layer_groups

LINEAR = ModuleInfo("Linear", frozenset({"weight", "bias"}))
MODULES = dict.fromkeys("abc", LINEAR)


@pytest.mark.parametrize(
    ("config_list", "groups"),
    [
        ([{"op_types": ["Linear"], "sparsity": 0.5}], [("a", "b", "c")]),
        ([{"op_types": ["Linear"], "total_sparsity": 0.5}], [("a", "b", "c")]),
        ([{"op_types": ["Linear"], "sparsity_per_layer": 0.5}], [("a",), ("b",), ("c",)]),
        ([{"op_types": ["Linear"], "sparse_ratio": 0.5}], [("a", "b", "c")]),
        (
            [
                {"op_names": ["a"], "sparse_ratio": 0.5, "global_group_id": 1},
                {"op_types": ["Linear"], "sparse_ratio": 0.5, "global_group_id": 1},
            ],
            [("a", "b", "c")],
        ),
        (
            [
                {"op_types": ["Linear"], "sparsity": 0.5},
                {"op_names": ["b"], "exclude": True},
            ],
            [("a", "c")],
        ),
    ],
)
def test_the_layers_of_an_entry_share_its_sparsity(
    config_list: list[dict[str, Any]], groups: list[tuple[str, ...]]
) -> None:
    assert [one.names for one in layer_groups(config_list, MODULES)] == groups


def test_limits_and_settings_go_with_the_layers() -> None:
    (old,) = layer_groups(
        [{"op_names": ["a", "b"], "total_sparsity": 0.5, "max_sparsity_per_layer": {"b": 0.7}}],
        MODULES,
    )
    (new,) = layer_groups(
        [
            {
                "op_names": ["a", "b"],
                "sparse_ratio": 0.5,
                "max_sparse_ratio": 0.7,
                "granularity": "out_channel",
            }
        ],
        MODULES,
    )

    assert old.limits == (1.0, 0.7)
    assert new.limits == (0.7, 0.7)
    assert old.entries([0.4, 0.6])[1] == {"op_names": ["b"], "total_sparsity": 0.6}
    assert new.entries([0.4, 0.6])[0] == {
        "op_names": ["a"],
        "sparse_ratio": 0.4,
        "granularity": "out_channel",
    }


@pytest.mark.parametrize("key", ["total_sparsity", "sparse_ratio"])
def test_entries_of_a_group_give_the_group_back(key: str) -> None:
    (group,) = layer_groups([{"op_names": ["a", "b"], key: 0.5}], MODULES)

    (again,) = layer_groups(group.shared_entries(0.3, [0.4, 1.0]), MODULES)

    assert (again.names, again.total, again.limits) == (("a", "b"), 0.3, (0.4, 1.0))
