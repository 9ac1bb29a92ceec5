import pytest

from nni.compression.base.target_quantizer import TargetPlace
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.calibration import check_bits, from_documented, to_legacy
from nni.compression.quantization.range_quantizer import RangeQuantizer

NEWER = {
    "conv": {
        "weight": {"quant_bits": 8, "scale": [[0.5]], "zero_point": [[0.0]]},
        "_input_0": {"tracked_min": -1.0, "tracked_max": 2.0},
        "_output_0": {"quant_bits": 4, "tracked_min": 0.0, "tracked_max": 1.0, "tracked_qmax": 127},
    }
}
OLDER = {
    "conv": {
        "weight_bits": 8,
        "weight_scale": [[0.5]],
        "weight_zero_point": [[0.0]],
        "tracked_min_input": -1.0,
        "tracked_max_input": 2.0,
        "output_bits": 4,
        "tracked_min_output": 0.0,
        "tracked_max_output": 1.0,
        "tracked_qmax_output": 127,
    }
}


def test_both_forms_hold_the_same() -> None:
    assert to_legacy(NEWER) == OLDER  # type: ignore[arg-type]  # dicts are invariant
    assert from_documented(OLDER) == NEWER


def test_the_newer_form_is_taken_over_with_canonical_names() -> None:
    found = from_documented({"fc": {"_input_": {"scale": 1.0}}, "none": {}})

    assert found == {"fc": {"_input_0": {"scale": 1.0}}, "none": {}}


def test_the_older_key_of_bits_counts() -> None:
    assert from_documented({"fc": {"weight_bit": 8}}) == {"fc": {"weight": {"quant_bits": 8}}}


def test_other_bits_are_refused() -> None:
    place = TargetPlace("fc", "weight")
    quantizer = RangeQuantizer(QuantizationSettings("int4"), place, average="latest")

    check_bits({"quant_bits": 4}, quantizer)
    check_bits({"scale": 1.0}, quantizer)
    with pytest.raises(
        ValueError, match=r"has 8 bits for fc\.weight, but config_list 4; give both"
    ):
        check_bits({"quant_bits": 8}, quantizer)
