"""Calibration configurations: scales and ranges of quantized targets, without tensors.

The form is that of NNI 3.0: by module and target, with `scale`, `zero_point`, `quant_dtype`,
`quant_scheme`, `quant_bits`, `tracked_min` and `tracked_max`. That of NNI 2.x has flat keys such as
`weight_bits` and `tracked_min_input` for each module.
"""

from collections.abc import Mapping
from typing import Final, cast

from nni.compression.base.target_quantizer import Calibration, TargetQuantizer
from nni.compression.config.quantization_settings import FIRST_INPUT, FIRST_OUTPUT, canonical_target

CalibrationConfig = dict[str, dict[str, Calibration]]
"""Calibrations by module and target name."""

_KINDS: Final = {"weight": "weight", "input": FIRST_INPUT, "output": FIRST_OUTPUT}
"""Target by the kind of tensor of NNI 2.x."""
_FLAT: Final = {
    "quant_bits": "{}_bits",
    "scale": "{}_scale",
    "zero_point": "{}_zero_point",
    "tracked_min": "tracked_min_{}",
    "tracked_max": "tracked_max_{}",
    "tracked_qmin": "tracked_qmin_{}",
    "tracked_qmax": "tracked_qmax_{}",
}
"""Key of NNI 2.x, in which the kind of tensor stands, by the key of NNI 3.0."""


def to_legacy(config: CalibrationConfig) -> dict[str, dict[str, object]]:
    """Return a calibration configuration in the form of NNI 2.x.

    Args:
        config: in the form of NNI 3.0; targets other than weight, first input and first output
            are left out.

    Returns:
        Flat numbers by module name.

    Examples:
        >>> to_legacy({"fc": {"weight": {"quant_bits": 8, "scale": 0.5, "zero_point": 0.0}}})
        {'fc': {'weight_bits': 8, 'weight_scale': 0.5, 'weight_zero_point': 0.0}}
    """
    return {
        name: {
            flat.format(kind): targets[target][key]
            for kind, target in _KINDS.items()
            for key, flat in _FLAT.items()
            if key in targets.get(target, {})
        }
        for name, targets in config.items()
    }


def from_documented(config: Mapping[str, Mapping[str, object]]) -> CalibrationConfig:
    """Return a calibration configuration of either form in that of NNI 3.0.

    Args:
        config: by module name; `weight_bit` of early versions counts as `weight_bits`.

    Returns:
        New dicts.

    Examples:
        >>> from_documented({"fc": {"weight_bit": 8, "tracked_max_input": 2.0}})
        {'fc': {'weight': {'quant_bits': 8}, '_input_0': {'tracked_max': 2.0}}}
    """
    return {name: _from_documented(values) for name, values in config.items()}


def check_bits(calibration: Calibration, quantizer: TargetQuantizer) -> None:
    """Raise ValueError unless a calibration has the number of bits that the configuration has.

    Args:
        calibration: of the target.
        quantizer: of the target.

    Raises:
        ValueError: the numbers differ.
    """
    bits = calibration.get("quant_bits", quantizer.settings.bits)
    if bits != quantizer.settings.bits:
        raise ValueError(
            f"calibration_config has {bits} bits for {quantizer.place.where}, but config_list "
            f"{quantizer.settings.bits}; give both the same"
        )


def _from_documented(values: Mapping[str, object]) -> dict[str, Calibration]:
    if all(isinstance(one, Mapping) for one in values.values()):
        targets = cast("Mapping[str, Mapping[str, object]]", values)
        return {canonical_target(name): dict(one) for name, one in targets.items()}
    found: dict[str, Calibration] = {}
    for kind, target in _KINDS.items():
        flat = {key: name.format(kind) for key, name in _FLAT.items()}
        one = {key: values[name] for key, name in flat.items() if name in values}
        if f"{kind}_bit" in values:
            one.setdefault("quant_bits", values[f"{kind}_bit"])
        if one:
            found[target] = one
    return found
