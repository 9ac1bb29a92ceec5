"""Precision of each layer of an engine, from a calibration configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import nn

from nni.compression.base.target_quantizer import Calibration
from nni.compression.config.quantization_settings import FIRST_INPUT
from nni.compression.quantization.calibration import CalibrationConfig, from_documented

BITS: Final = (8, 16, 32)
_LARGEST_INTEGER: Final = 127
WEIGHTED: Final = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.Linear)
"""Layers with a weight that engines compute with integers."""
SUPPORTED: Final = (*WEIGHTED, nn.ReLU, nn.ReLU6, nn.MaxPool2d)


@dataclass(frozen=True, slots=True)
class Precisions:
    """Calibration of an engine's 8-bit layers, and names of its 16-bit layers."""

    integers: CalibrationConfig
    """Scales of the layers with integers of 8 bits."""
    halves: tuple[str, ...]
    """Names of the layers with floating-point numbers of 16 bits."""

    def symmetric(self) -> "Precisions":
        """Return the same with signed integers whose zero point is 0, by the largest magnitudes.

        Raises:
            ValueError: a target has another zero point, and no range.
        """
        integers = {
            name: {
                target: _symmetric(f"config[{name!r}][{target!r}]", numbers)
                for target, numbers in targets.items()
            }
            for name, targets in self.integers.items()
        }
        return Precisions(integers, self.halves)


def precisions_of(
    model: nn.Module, config: Mapping[str, Mapping[str, object]] | None, extra_layer_bits: int
) -> Precisions:
    """Return the layers of 8 and of 16 bits; raise ValueError for a wrong configuration.

    Args:
        model: an unwrapped model.
        config: calibration configuration in the form of NNI 3.0 or 2.x; None: of no layer.
        extra_layer_bits: bits of the layers that `config` does not name.

    Raises:
        ValueError: a number of bits, a name or a range is wrong or missing.

    Examples:
        >>> precisions_of(nn.Sequential(nn.Linear(2, 2)), None, 16).halves
        ('0',)
    """
    check_bits("extra_layer_bits", extra_layer_bits)
    if extra_layer_bits == min(BITS):
        raise ValueError(
            "extra_layer_bits must be 16 or 32 for layers without a range, got 8; give "
            "calib_data_loader, so that the ranges of all layers are measured"
        )
    modules = dict(model.named_modules())
    integers: CalibrationConfig = {}
    halves = []
    for name, targets in from_documented(config or {}).items():
        bits = _layer_bits(modules, name, targets)
        if bits == min(BITS):
            integers[name] = _integer_targets(name, modules[name], targets)
        elif bits < max(BITS):
            halves.append(name)
    if extra_layer_bits < max(BITS):
        named = config or {}
        halves += [
            name for name, one in modules.items() if isinstance(one, WEIGHTED) and name not in named
        ]
    return Precisions(integers, tuple(halves))


def _symmetric(where: str, numbers: Calibration) -> Calibration:
    points = torch.tensor(numbers.get("zero_point", 0.0))
    if numbers.get("quant_dtype") == "int8" and not bool(points.any()):
        return numbers
    if not {"tracked_min", "tracked_max"} <= numbers.keys():
        raise ValueError(
            f"{where} must have tracked_min and tracked_max, since the engine only has ranges "
            f"around 0, got the keys {sorted(numbers)}"
        )
    ends = torch.tensor([numbers["tracked_min"], numbers["tracked_max"]], dtype=torch.float32)
    scale = ends.abs().amax(0) / _LARGEST_INTEGER
    return {
        "quant_bits": min(BITS),
        "quant_dtype": "int8",
        "scale": scale.tolist(),
        "zero_point": torch.zeros_like(scale).tolist(),
        "tracked_qmin": -_LARGEST_INTEGER,
        "tracked_qmax": _LARGEST_INTEGER,
    }


def check_bits(where: str, bits: object) -> None:
    """Raise ValueError unless a number of bits is 8, 16 or 32."""
    if bits not in BITS:
        raise ValueError(f"{where} must be one of {list(BITS)}, got {bits!r}")


def _layer_bits(
    modules: Mapping[str, nn.Module], name: str, targets: Mapping[str, Calibration]
) -> int:
    if name not in modules:
        raise ValueError(
            f"config has layer {name!r}, which the model lacks; give the model that was "
            "calibrated, unwrapped"
        )
    if not isinstance(modules[name], SUPPORTED):
        kinds = ", ".join(one.__name__ for one in SUPPORTED)
        raise ValueError(  # noqa: TRY004 - a value of the configuration
            f"config[{name!r}] is a {type(modules[name]).__name__}, which engines do not compute "
            f"with integers; leave it out, or name layers of {kinds}"
        )
    bits = []
    for target, numbers in targets.items():
        if "quant_bits" in numbers:
            check_bits(f"config[{name!r}][{target!r}]['quant_bits']", numbers["quant_bits"])
            bits.append(int(str(numbers["quant_bits"])))
    return min(bits, default=max(BITS))


def _integer_targets(
    name: str, module: nn.Module, targets: Mapping[str, Calibration]
) -> dict[str, Calibration]:
    found = {
        target: numbers
        for target, numbers in targets.items()
        if numbers.get("quant_bits") == min(BITS)
    }
    if "weight" not in found:
        return found
    # NNI 2.x gives the range of the input without bits, and of the weight bits without a range.
    entry = targets.get(FIRST_INPUT, {})
    if FIRST_INPUT not in found:
        if not {"tracked_min", "tracked_max"} <= entry.keys():
            raise ValueError(
                f"config[{name!r}] has bits of the weight, but no range of the input; give "
                "tracked_min_input and tracked_max_input, or export the configuration of a "
                "quantizer with target '_input_'"
            )
        found[FIRST_INPUT] = {**entry, "quant_bits": min(BITS)}
    if not found["weight"].keys() & {"scale", "tracked_max"}:
        weight = module.get_parameter("weight").detach()
        ends = {"tracked_min": float(weight.min()), "tracked_max": float(weight.max())}
        found["weight"] = {**found["weight"], **ends}
    return found
