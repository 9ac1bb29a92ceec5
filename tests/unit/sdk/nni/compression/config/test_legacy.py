import copy

import pytest

from nni.compression.config.legacy import canonical, is_legacy, translated
from nni.compression.config.selection import ModuleInfo
from nni.compression.config.settings import ConfigListError

LINEAR = ModuleInfo("Linear", frozenset({"weight", "bias"}))
MODULES = dict.fromkeys("abcd", LINEAR)


def ratios(config_list: list[dict[str, object]]) -> dict[str, object]:
    return {
        name: entry["sparse_ratio"]
        for entry in translated(config_list, MODULES)
        for name in entry["op_names"]  # type: ignore[attr-defined]
    }


@pytest.mark.claim("compression", 1)
def test_the_last_matching_entry_wins() -> None:
    config_list: list[dict[str, object]] = [
        {"sparsity": 0.8, "op_types": ["default"]},
        {"sparsity": 0.6, "op_names": ["a", "b"]},
        {"exclude": True, "op_names": ["c"]},
    ]

    assert ratios(config_list) == {"a": 0.6, "b": 0.6, "d": 0.8}


@pytest.mark.claim("compression", 3)
def test_exclude_is_a_truth_value_and_may_be_taken_back() -> None:
    every: dict[str, object] = {"sparsity": 0.5, "op_types": ["Linear"]}

    assert set(ratios([{**every, "exclude": False}])) == set("abcd")
    assert set(ratios([every, {"exclude": True, "op_names": ["a"]}])) == set("bcd")
    again: dict[str, object] = {"sparsity": 0.1, "op_names": ["a"]}
    assert ratios([every, {"exclude": True, "op_names": ["a"]}, again])["a"] == 0.1


@pytest.mark.claim("compression", 5)
def test_two_spellings_of_the_sparsity_exclude_each_other() -> None:
    entry = {"op_types": ["Linear"], "sparsity": 0.5, "sparsity_per_layer": 0.5}

    with pytest.raises(ValueError, match="both sparsity and sparsity_per_layer"):
        canonical([entry], MODULES)


@pytest.mark.claim("compression", 7)
def test_the_canonical_form_is_idempotent_and_leaves_its_input() -> None:
    config_list: list[dict[str, object]] = [
        {"op_types": ["default"], "total_sparsity": 0.5, "max_sparsity_per_layer": 0.9},
        {"op_partial_names": ["a"], "sparsity": 0.2},
        {"exclude": True, "op_names": ["d"]},
    ]
    before = copy.deepcopy(config_list)

    once = canonical(config_list, MODULES)

    assert config_list == before
    assert canonical(once, MODULES) == once
    assert once == [
        {
            "op_names": ["b", "c"],
            "total_sparsity": 0.5,
            "max_sparsity_per_layer": {"b": 0.9, "c": 0.9},
        },
        {"op_names": ["a"], "total_sparsity": 0.2},
    ]


def test_a_total_sparsity_becomes_a_group_of_its_own() -> None:
    entries = translated(
        [
            {"op_names": ["a", "b"], "total_sparsity": 0.5, "max_sparsity_per_layer": 0.8},
            {"op_names": ["c", "d"], "total_sparsity": 0.5},
        ],
        MODULES,
    )

    groups = [entry["global_group_id"] for entry in entries]
    assert groups[0] == groups[1] != groups[2] == groups[3]
    assert [entry.get("max_sparse_ratio") for entry in entries] == [0.8, 0.8, None, None]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"op_types": ["Linear"], "sparsity": 0.5, "start_epoch": 1}, "unknown key 'start_epoch'"),
        ({"op_types": ["Linear"], "sparsity": 1.0}, "sparsity must be a number in [0, 1), got 1.0"),
        ({"op_types": ["Linear"], "exclude": "yes"}, "exclude must be True or False, got 'yes'"),
        ({"op_types": ["Linear"], "exclude": False}, "needs sparsity, total_sparsity or exclude"),
        (
            {"op_types": ["Linear"], "sparsity": 0.5, "max_sparsity_per_layer": 0.5},
            "max_sparsity_per_layer needs total_sparsity",
        ),
        (
            {"op_types": ["Linear"], "total_sparsity": 0.5, "max_sparsity_per_layer": 2},
            "max_sparsity_per_layer must be a number in (0, 1], got 2",
        ),
    ],
)
def test_a_broken_rule_is_named(entry: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigListError) as raised:
        canonical([entry], MODULES)

    assert str(raised.value).startswith("config_list[0]")
    assert problem in str(raised.value)


def test_dialects_are_recognised_by_their_keys() -> None:
    assert is_legacy([{"op_names": ["a"], "exclude": True}])
    assert not is_legacy([{"op_names": ["a"], "sparse_ratio": 0.5}])
