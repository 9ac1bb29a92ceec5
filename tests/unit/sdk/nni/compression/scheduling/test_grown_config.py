from collections.abc import Mapping
from typing import Any

import pytest

from nni.compression.config.selection import ModuleInfo
from nni.compression.scheduling.grown_config import Growth, Sizes, grown_config_list

LINEAR = ModuleInfo("Linear", frozenset({"weight", "bias"}))
MODULES = {"a": LINEAR, "b": LINEAR}
SIZES = {"a": 100, "b": 300}


class Half(Growth):
    """Half of everything."""

    def ratio(self, final: float) -> float:
        return final / 2

    def part(self) -> float:
        return 0.5


def grown(
    config_list: list[dict[str, Any]], current: Mapping[str, int] = SIZES, **options: bool
) -> list[dict[str, Any]]:
    return grown_config_list(config_list, MODULES, Half(), Sizes(SIZES, current), **options)


def test_entries_of_nni_2_stay_in_their_canonical_form() -> None:
    config_list = [
        {"op_types": ["Linear"], "total_sparsity": 0.8, "max_sparsity_per_layer": 0.9},
        {"op_names": ["b"], "sparsity": 0.4},
    ]

    assert grown(config_list) == [
        {"op_names": ["a"], "total_sparsity": 0.4, "max_sparsity_per_layer": {"a": 0.9}},
        {"op_names": ["b"], "total_sparsity": 0.2},
    ]


def test_ratios_thresholds_and_settings_of_targets_grow() -> None:
    entry = {
        "op_types": ["Linear"],
        "granularity": "out_channel",
        "min_sparse_ratio": 0.2,
        "max_sparse_ratio": 0.9,
        "target_settings": {
            "weight": {"sparse_ratio": 0.8},
            "bias": {"sparse_threshold": 0.5, "align": None},
        },
    }

    assert grown([entry]) == [
        {
            "op_names": ["a", "b"],
            "granularity": "out_channel",
            "min_sparse_ratio": 0.1,
            "max_sparse_ratio": 0.9,
            "target_settings": {
                "weight": {"sparse_ratio": 0.4},
                "bias": {"sparse_threshold": 0.25, "align": None},
            },
        }
    ]


def test_what_a_speedup_removed_counts_towards_each_layer() -> None:
    entry = {"op_types": ["Linear"], "sparse_ratio": 0.8, "max_sparse_ratio": 0.2}

    first, second = grown([entry], {"a": 80, "b": 300})

    assert first["op_names"] == ["a"]
    assert first["sparse_ratio"] == pytest.approx((0.4 - 0.2) / 0.8)
    assert 0 < first["max_sparse_ratio"] < 1e-6  # nothing more, but a number that is allowed
    assert second == {"op_names": ["b"], "sparse_ratio": 0.4, "max_sparse_ratio": 0.2}


def test_what_a_speedup_removed_counts_towards_a_group() -> None:
    entries: list[dict[str, Any]] = [
        {"op_names": [name], "sparse_ratio": 0.8, "global_group_id": 1} for name in ("a", "b")
    ]

    for entry in grown(entries, {"a": 40, "b": 300}):
        assert entry["sparse_ratio"] == pytest.approx((0.4 - 60 / 400) / (1 - 60 / 400))


def test_shared_entries_stay_whole() -> None:
    entry = {"op_types": ["Linear"], "sparse_ratio": 0.8}

    (found,) = grown([entry], {"a": 40, "b": 300}, shared_entries=True)

    assert found["op_names"] == ["a", "b"]
    assert found["sparse_ratio"] == pytest.approx((0.4 - 60 / 400) / (1 - 60 / 400))


@pytest.mark.parametrize("key", ["sparse_ratio", "sparsity"])
def test_modules_that_are_gone_are_left_out(key: str) -> None:
    found = grown([{"op_types": ["Linear"], key: 0.8}], {"b": 300})

    assert [entry["op_names"] for entry in found] == [["b"]]
