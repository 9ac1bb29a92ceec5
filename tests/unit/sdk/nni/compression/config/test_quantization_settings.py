import pytest

from nni.compression.config.quantization_settings import (
    QuantizationSetting,
    QuantizationSettings,
    canonical_target,
    check_quantization,
    quantization_from,
)
from nni.compression.config.settings import ConfigListError


def test_a_dtype_has_bits_and_a_sign() -> None:
    assert (QuantizationSettings().bits, QuantizationSettings().signed) == (8, True)
    unsigned = QuantizationSettings(quant_dtype="uint16")
    assert (unsigned.bits, unsigned.signed) == (16, False)


def test_missing_settings_have_defaults_and_sizes_are_a_tuple() -> None:
    settings = quantization_from({"granularity": [1, -1], "quant_scheme": None})

    assert settings == QuantizationSettings(granularity=(1, -1))


def test_targets_by_the_parameters_of_a_module() -> None:
    assert list(QuantizationSetting.of("Linear", {"weight"})) == [
        *("_input_0", "weight", "_output_0")
    ]
    assert list(QuantizationSetting.of("Embedding", {"weight"})) == ["weight", "_output_0"]
    assert list(QuantizationSetting.of("MaxPool2d", ())) == ["_output_0"]


def test_registered_targets_replace_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuantizationSetting, "_registered", {})

    QuantizationSetting.register("Mine", {"_input_": {"quant_dtype": "int4"}})

    assert QuantizationSetting.of("Mine", {"weight"}) == {"_input_0": {"quant_dtype": "int4"}}
    with pytest.raises(ConfigListError, match="QuantizationSetting 'Mine' target 'weight' has an"):
        QuantizationSetting.register("Mine", {"weight": {"bits": 4}})


def test_the_first_input_and_output_have_one_name() -> None:
    names = ["_input_", "_output_", "_input_0", "_input_mask", "weight"]

    assert list(map(canonical_target, names)) == [
        *("_input_0", "_output_0", "_input_0", "_input_mask", "weight")
    ]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"quant_dtype": "float8"}, r"here\.quant_dtype must be int or uint and a number of bits"),
        ({"quant_dtype": "int33"}, "up to 32, such as 'int8' or 'uint4', got 'int33'"),
        ({"quant_dtype": 8}, "got 8"),
        ({"quant_scheme": "per_tensor_affine"}, r"must be one of affine, symmetric, got 'per_"),
        ({"granularity": "channel"}, r"here\.granularity must be one of default, in_channel"),
        ({"apply_method": "mul"}, "must be one of bypass, clamp_round, qat_clamp_round, got 'mul'"),
        ({"quant_start_step": -1}, r"here\.quant_start_step must be an int >= 0, got -1"),
        ({"quant_start_step": True}, "must be an int >= 0, got True"),
        ({"quant_type": "int8"}, "unknown key 'quant_type'; did you mean 'quant_dtype'"),
    ],
)
def test_a_broken_rule_is_named(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigListError, match=problem):
        check_quantization(values, "here")
