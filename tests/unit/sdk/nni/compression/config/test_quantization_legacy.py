from typing import Any

import pytest

from nni.compression.config.quantization_defaults import quant_scheme_dtype
from nni.compression.config.quantization_legacy import (
    is_legacy_quantization,
    translated_quantization,
)
from nni.compression.config.selection import ModuleInfo
from nni.compression.config.settings import ConfigListError

LINEAR = ModuleInfo("Linear", frozenset({"weight", "bias"}))
MODULES = {"a": LINEAR, "b": LINEAR, "act": ModuleInfo("ReLU", frozenset())}
ENTRY: dict[str, Any] = {"op_names": ["a"], "quant_types": ["weight", "output"], "quant_bits": 8}


def settings_of(**values: object) -> dict[str, Any]:
    (entry,) = translated_quantization([{**ENTRY, **values}], MODULES)
    found: dict[str, Any] = entry["target_settings"]  # type: ignore[assignment]
    return found


@pytest.mark.claim("compression", 8)
def test_bits_are_given_for_all_types_or_for_each() -> None:
    assert {one["quant_dtype"] for one in settings_of(quant_bits=4).values()} == {"uint4"}
    each = settings_of(quant_bits={"weight": 8, "output": 4})
    assert (each["weight"]["quant_dtype"], each["_output_0"]["quant_dtype"]) == ("uint8", "uint4")
    with pytest.raises(ConfigListError, match=r"config_list\[0\]\.quant_bits lacks 'output', whi"):
        settings_of(quant_bits={"weight": 8})


def test_dtype_and_scheme_are_translated() -> None:
    found = settings_of(
        quant_dtype={"weight": "int"},
        quant_scheme={"weight": "per_channel_symmetric", "output": "per_channel_affine"},
        quant_start_step=10,
    )

    assert found["weight"] == {
        "quant_dtype": "int8",
        "quant_scheme": "symmetric",
        "granularity": "out_channel",
        "quant_start_step": 10,
    }
    assert found["_output_0"] == {
        "quant_dtype": "uint8",
        "quant_scheme": "affine",
        "granularity": "per_channel",
        "quant_start_step": 10,
    }


@pytest.mark.claim("compression", 70)
def test_a_chosen_default_counts_unless_the_entry_says_something_else() -> None:
    with quant_scheme_dtype("weight", "per_channel_symmetric", "int"):
        chosen = settings_of()["weight"]
        given = settings_of(quant_dtype="uint", quant_scheme="per_tensor_affine")["weight"]

    assert list(chosen.values()) == ["int8", "symmetric", "out_channel"]
    assert list(given.values()) == ["uint8", "affine", "default"]
    assert settings_of()["weight"] == given


def test_the_last_entry_decides_and_exclude_removes() -> None:
    every = {"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 8}
    again = {**every, "op_types": ["default"], "op_names": ["b"], "quant_bits": 4}

    entries = translated_quantization([every, again, {"op_names": ["a"], "exclude": True}], MODULES)

    assert [(one["op_names"], one["target_names"]) for one in entries] == [(["b"], ["weight"])]


def test_the_dialect_is_known_by_its_keys() -> None:
    assert is_legacy_quantization([{"op_names": ["a"]}, ENTRY])
    assert not is_legacy_quantization([{"op_names": ["a"], "quant_dtype": "int8"}])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"quant_types": None}, r"config_list\[0\] needs quant_types, or exclude: True"),
        ({"quant_bits": None}, "needs quant_bits, or exclude: True"),
        ({"quant_types": ["bias"]}, "must be a list of weight, input, output, got .'bias'."),
        ({"quant_types": "weight"}, "must be a list of weight, input, output, got 'weight'"),
        ({"quant_bits": 0}, r"\.quant_bits must be an int from 1 to 32, got 0"),
        ({"quant_bits": {"weight": 8, "output": 40}}, r"\.quant_bits\.output must be an int from"),
        ({"quant_bits": {"weight": 8, "output": 8, "outputs": 8}}, "did you mean 'output'"),
        ({"quant_dtype": "int8"}, r"\.quant_dtype must be one of int, uint, got 'int8'"),
        ({"quant_scheme": "affine"}, r"\.quant_scheme must be one of per_tensor_affine"),
        ({"quant_start_step": 1.5}, r"\.quant_start_step must be an int >= 0, got 1\.5"),
        ({"exclude": "yes"}, r"\.exclude must be True or False, got 'yes'"),
        ({"quant_bit": 8}, "did you mean 'quant_bits'"),
    ],
)
def test_a_broken_rule_is_named(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigListError, match=problem):
        settings_of(**values)
