import copy
import logging

import pytest

from nni.compression.config.quantization_defaults import quant_scheme_dtype
from nni.compression.config.quantization_plan import fused_names, kind_of, quantization_plan
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.config.selection import ModuleInfo
from nni.compression.config.settings import ConfigListError

CONV = ModuleInfo("Conv2d", frozenset({"weight"}))
MODULES = {
    "conv": CONV,
    "bn": ModuleInfo("BatchNorm2d", frozenset({"weight", "bias"})),
    "act": ModuleInfo("ReLU", frozenset()),
    "fc": ModuleInfo("Linear", frozenset({"weight", "bias"})),
}
EVERY: dict[str, object] = {"op_types": ["Conv2d", "Linear", "ReLU"]}


def test_a_module_has_the_targets_of_its_type() -> None:
    plan = quantization_plan([EVERY], MODULES)

    assert {name: list(targets) for name, targets in plan.items()} == {
        "conv": ["_input_0", "weight", "_output_0"],
        "act": ["_output_0"],
        "fc": ["_input_0", "weight", "_output_0"],
    }
    assert plan["conv"]["weight"] == QuantizationSettings()


def test_an_algorithm_may_have_fewer_kinds_of_targets() -> None:
    plan = quantization_plan([EVERY], MODULES, kinds=["weight"])

    assert {name: list(targets) for name, targets in plan.items()} == {
        "conv": ["weight"],
        "fc": ["weight"],
    }


def test_settings_of_a_target_override_those_of_the_entry() -> None:
    entry = {
        "op_names": ["fc"],
        "quant_dtype": "int4",
        "target_names": ["weight", "_input_", "bias"],
        "target_settings": {"_input_": {"quant_dtype": "uint8", "quant_scheme": "affine"}},
    }
    before = copy.deepcopy(entry)

    targets = quantization_plan([entry, EVERY], MODULES)["fc"]

    assert [one.quant_dtype for one in targets.values()] == ["int4", "uint8", "int4", "int8"]
    assert list(targets) == ["weight", "_input_0", "bias", "_output_0"]
    assert entry == before


def test_the_bias_is_a_target_only_if_it_is_named() -> None:
    assert "bias" not in quantization_plan([EVERY], MODULES)["fc"]
    named = {"op_names": ["conv"], "target_names": ["weight", "bias"]}
    assert list(quantization_plan([named], MODULES)["conv"]) == ["weight"]


@pytest.mark.claim("compression", 70)
def test_a_chosen_default_counts_for_new_plans_only() -> None:
    before = quantization_plan([EVERY], MODULES)

    with quant_scheme_dtype("output", "per_channel_affine", "uint"):
        found = quantization_plan([EVERY], MODULES)["act"]["_output_0"]
        given = quantization_plan([{**EVERY, "quant_dtype": "int4"}], MODULES)["act"]["_output_0"]

    assert found == QuantizationSettings("uint8", "affine", "per_channel")
    assert given == QuantizationSettings("int4", "affine", "per_channel")
    assert before == quantization_plan([EVERY], MODULES)


def test_lists_of_the_older_dialect_are_translated() -> None:
    entry = {"op_names": ["act"], "quant_types": ["output"], "quant_bits": 4}

    plan = quantization_plan([entry], MODULES)

    assert plan == {"act": {"_output_0": QuantizationSettings("uint4", "affine")}}


def test_fused_modules_belong_to_their_layer() -> None:
    config_list = [{**EVERY, "fuse_names": [("conv", "bn", "act")]}]
    plan = quantization_plan(config_list, MODULES)

    assert fused_names(config_list, MODULES, plan) == {"conv": ("bn", "act")}


def test_an_empty_selection_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert quantization_plan([{"op_types": ["Conv1d"]}], MODULES) == {}

    assert "config_list selects no target of the model" in caplog.text


def test_kinds_of_targets() -> None:
    kinds = [kind_of(one) for one in ("weight", "bias", "_input_0", "_output_logits")]

    assert kinds == ["weight", "weight", "input", "output"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"quant_dtyp": "int8"}, "did you mean 'quant_dtype'"),
        ({"target_names": ["weigth"]}, r"selects conv, a Conv2d, which has no parameter 'weigth'"),
        ({"granularity": "out_channel"}, "for _input_0 of conv, which is for parameters; write"),
        (
            {"target_names": ["weight"], "granularity": "per_channel"},
            "'per_channel' for weight of conv, which is for inputs and outputs; write 'out_ch",
        ),
        ({"fuse_names": [("conv",)]}, "fuse_names must be a list of tuples of two names or more"),
        ({"fuse_names": "conv"}, "fuse_names must be a list of tuples of two names or more"),
        ({"target_settings": {"weight": {"fuse_names": []}}}, "unknown key 'fuse_names'"),
    ],
)
def test_a_broken_rule_is_named(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigListError, match=problem):
        quantization_plan([{"op_names": ["conv"], **values}], MODULES)


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([("conv", "norm")], "has 'norm', which the model lacks"),
        ([("bn", "act")], "begins with 'bn', which no entry selects"),
        ([("conv", "bn"), ("fc", "bn")], "has 'bn' twice; a module is in one tuple only"),
    ],
)
def test_wrong_names_of_fused_modules_are_refused(
    groups: list[tuple[str, ...]], problem: str
) -> None:
    config_list = [{"op_names": ["conv", "fc"], "fuse_names": groups}]
    plan = quantization_plan(config_list, MODULES)

    with pytest.raises(ConfigListError, match=problem):
        fused_names(config_list, MODULES, plan)
