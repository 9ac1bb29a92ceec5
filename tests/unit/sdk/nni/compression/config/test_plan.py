import copy
import logging

import pytest

from nni.compression.config.plan import pruning_plan
from nni.compression.config.selection import ModuleInfo
from nni.compression.config.settings import Align, ConfigListError

LINEAR = ModuleInfo("Linear", frozenset({"weight", "bias"}))
BARE = ModuleInfo("Linear", frozenset({"weight"}))
MODULES = {"a": LINEAR, "b": BARE, "act": ModuleInfo("ReLU", frozenset())}


def test_a_module_has_weight_and_the_aligned_bias_as_targets() -> None:
    plan = pruning_plan([{"op_types": ["Linear"], "sparse_ratio": 0.5}], MODULES)

    assert {name: list(targets) for name, targets in plan.items()} == {
        "a": ["weight", "bias"],
        "b": ["weight"],
    }
    assert plan["a"]["bias"].align == Align("weight", (0,))
    assert plan["a"]["weight"].align is None


def test_the_first_entry_that_selects_a_target_configures_it() -> None:
    plan = pruning_plan(
        [
            {"op_names": ["a"], "sparse_ratio": 0.1},
            {"op_types": ["Linear"], "sparse_ratio": 0.5},
        ],
        MODULES,
    )

    assert plan["a"]["weight"].sparse_ratio == 0.1
    assert plan["b"]["weight"].sparse_ratio == 0.5


def test_settings_of_a_target_override_those_of_the_entry() -> None:
    entry = {
        "op_names": ["a"],
        "sparse_ratio": 0.5,
        "target_names": ["weight", "bias", "_output_"],
        "target_settings": {
            "bias": {"sparse_threshold": 0.1},
            "_output_": {"apply_method": "add", "granularity": "per_channel"},
        },
    }

    targets = pruning_plan([entry], MODULES)["a"]

    assert targets["bias"].align is None
    assert (targets["bias"].sparse_ratio, targets["bias"].sparse_threshold) == (None, 0.1)
    assert (targets["_output_"].apply_method, targets["_output_"].sparse_ratio) == ("add", 0.5)


def test_an_aligned_bias_stays_aligned_with_other_settings() -> None:
    entry = {
        "op_names": ["a"],
        "sparse_ratio": 0.5,
        "target_settings": {"bias": {"apply_method": "bypass"}},
    }

    bias = pruning_plan([entry], MODULES)["a"]["bias"]

    assert (bias.align, bias.apply_method) == (Align("weight", (0,)), "bypass")


def test_a_bias_alone_has_a_mask_of_its_own() -> None:
    entry = {"op_names": ["a"], "sparse_ratio": 0.5, "target_names": ["bias"]}

    assert pruning_plan([entry], MODULES)["a"]["bias"].align is None


def test_entries_are_groups_if_the_algorithm_ranks_them_together() -> None:
    config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
    before = copy.deepcopy(config_list)

    plan = pruning_plan(config_list, MODULES, per_entry=True)

    assert plan["a"]["weight"].global_group_id == plan["b"]["weight"].global_group_id == "entry 0"
    assert config_list == before


def test_an_empty_selection_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert pruning_plan([{"op_types": ["Conv2d"], "sparse_ratio": 0.5}], MODULES) == {}

    assert "config_list selects no module of the model" in caplog.text


@pytest.mark.parametrize(
    ("config_list", "problem"),
    [
        ({"op_types": ["Linear"]}, "config_list must be a list of dicts"),
        ([{"op_types": ["Linear"], "sparse_rate": 0.5}], "did you mean 'sparse_ratio'?"),
        ([{"op_types": ["Linear"]}], "sets neither sparse_ratio nor sparse_threshold for weight"),
        ([{"op_names": ["act"], "sparse_ratio": 0.5}], "selects act, a ReLU, which has no parame"),
        (
            [{"op_types": ["Linear"], "sparse_ratio": 0.5, "target_names": "weight"}],
            "target_names must be a list of str",
        ),
        (
            [{"op_types": ["Linear"], "sparse_ratio": 0.5, "target_settings": {"bias": 1}}],
            "target_settings.bias must be a dict",
        ),
        (
            [
                {"op_names": ["a"], "sparse_ratio": 0.5, "global_group_id": 1},
                {"op_names": ["b"], "sparse_ratio": 0.4, "global_group_id": 1},
            ],
            "global_group_id 1 needs one sparse_ratio for all members, got 0.5 for a.weight",
        ),
    ],
)
def test_a_broken_rule_is_named(config_list: list[dict[str, object]], problem: str) -> None:
    with pytest.raises(ConfigListError) as raised:
        pruning_plan(config_list, MODULES)

    assert problem in str(raised.value)
