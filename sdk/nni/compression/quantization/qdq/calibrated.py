"""Quantizers whose scales and zero points are those of a calibration configuration."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import torch
from torch import Tensor, nn

from nni.compression.base.folding import folding_problem
from nni.compression.base.module_wrapper import FusedModule, ModuleWrapper
from nni.compression.base.numerics import IntegerRange, IntegerType, scale_and_zero_point
from nni.compression.base.target_quantizer import IntegerForm, TargetPlace, TargetQuantizer
from nni.compression.base.target_space import is_parameter
from nni.compression.config.quantization_settings import QuantizationSettings, check_quantization
from nni.compression.quantization.calibration import from_documented

_ARGUMENT: Final = "calibration"


class CalibratedQuantizer(TargetQuantizer):
    """Quantizer of one target by the fixed scale and zero point of a calibration.

    Args:
        settings: settings of the target.
        place: the target.
        scale: of a shape that broadcasts to that of the target.
        zero_point: shaped like `scale`.
        limits: smallest and largest integer.
    """

    def __init__(
        self,
        settings: QuantizationSettings,
        place: TargetPlace,
        scale: Tensor,
        zero_point: Tensor,
        limits: IntegerRange,
    ) -> None:
        super().__init__(settings, place)
        self.scale, self.zero_point = scale, zero_point
        self.limits = limits

    def integer_form(self) -> IntegerForm:  # noqa: D102 - see the base
        return IntegerForm(self.scale, self.zero_point, self.limits)

    def forward(self, value: Tensor) -> Tensor:
        """Return the target quantized by fixed scale and zero point, then dequantized; gradient 0.

        Args:
            value: the target, any shape.
        """
        integers = torch.round((value / self.scale + self.zero_point).clamp(*self.limits))
        return self.scale * (integers - self.zero_point)


def calibrated_wrappers(
    model: nn.Module,
    calibration: Mapping[str, Mapping[str, object]],
    folded: Sequence[tuple[str, str]],
) -> dict[str, ModuleWrapper]:
    """Return wrappers of the modules that a calibration names; the model is not changed.

    Args:
        model: an unwrapped model.
        calibration: in the form of NNI 3.0 or 2.x.
        folded: names of layers and of the batch norms that they compute as well.

    Returns:
        By module name.

    Raises:
        ValueError: the model has no such module, or numbers are missing.
    """
    modules = dict(model.named_modules())
    norms = {layer: (modules[norm],) for layer, norm in folded}
    found = {}
    for name, targets in from_documented(calibration).items():
        if name not in modules:
            raise ValueError(
                f"{_ARGUMENT} has module {name!r}, which the model lacks; give the model that was "
                "calibrated, unwrapped"
            )
        fused = norms.get(name, ())
        assert not fused or folding_problem(modules[name], fused) is None  # found so
        quantizers = {
            target: calibrated_quantizer(
                TargetPlace(name, target, type(modules[name]).__name__), numbers
            )
            for target, numbers in targets.items()
            if "quant_bits" in numbers
        }
        found[name] = ModuleWrapper(modules[name], name, {}, quantizers, fused)
    return found


@contextmanager
def in_model(
    model: nn.Module, wrappers: Mapping[str, ModuleWrapper], folded: Sequence[tuple[str, str]]
) -> Iterator[None]:
    """Put wrappers into a model for a `with` block; norms that they fold return their inputs.

    Args:
        model: an unwrapped model; as before afterwards.
        wrappers: by module name.
        folded: names of layers and of the batch norms that they compute as well.

    Yields:
        Nothing.
    """
    norms = [norm for layer, norm in folded if layer in wrappers]
    replaced: dict[int, nn.Module] = {id(one.module): one for one in wrappers.values()}
    for name in norms:
        norm = model.get_submodule(name)
        replaced[id(norm)] = FusedModule(norm, name)
    places = [
        (owner, name, child)
        for owner in model.modules()
        for name, child in owner._modules.items()  # noqa: SLF001 - named_children omits a second name
        if child is not None and id(child) in replaced
    ]
    try:
        for owner, name, child in places:
            setattr(owner, name, replaced[id(child)])
        yield
    finally:
        for owner, name, child in places:
            setattr(owner, name, child)


def calibrated_quantizer(place: TargetPlace, numbers: Mapping[str, object]) -> CalibratedQuantizer:
    """Construct a target's quantizer from its calibration; raise without scale and range.

    Args:
        place: the target.
        numbers: its calibration; without `quant_dtype`, which NNI 2.x has not, integers have a
            sign if their zero point is below 0, or 0 and the range or target is not positive.

    Raises:
        ValueError: there is no scale, as in a calibration of DoReFa or BNN.
    """
    where = f"{_ARGUMENT}[{place.module_name!r}][{place.target!r}]"
    scale, zero_point = _tensor(numbers, "scale"), _tensor(numbers, "zero_point")
    if scale is None:
        scale, zero_point = _legacy_numbers(numbers, zero_point)
    if scale is None:
        raise ValueError(
            f"{where} must have a scale or tracked_min and tracked_max, got the keys "
            f"{sorted(numbers)}; export with the quantizer itself"
        )
    zero_point = torch.zeros_like(scale) if zero_point is None else zero_point
    dtype = numbers.get("quant_dtype") or _legacy_dtype(place, numbers, zero_point)
    check_quantization({"quant_dtype": dtype}, where)
    settings = QuantizationSettings(quant_dtype=str(dtype))
    limits = _limits(settings, numbers)
    return CalibratedQuantizer(settings, place, scale, zero_point, limits)


def _limits(settings: QuantizationSettings, numbers: Mapping[str, object]) -> IntegerRange:
    ends = _given_limits(numbers)
    if ends is not None:
        return ends
    bits = settings.bits
    if settings.signed:
        return IntegerRange(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return IntegerRange(0, (1 << bits) - 1)


def _given_limits(numbers: Mapping[str, object]) -> IntegerRange | None:
    ends = [numbers.get(key) for key in ("tracked_qmin", "tracked_qmax")]
    if isinstance(ends[0], int) and isinstance(ends[1], int):
        return IntegerRange(ends[0], ends[1])
    return None


def _legacy_numbers(
    numbers: Mapping[str, object], zero_point: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Return scale and zero point by the range, which NNI 2.x leaves out; None without a range.

    The range is symmetric, unless it is known that no integer is negative, as those of observers.
    """
    low, high = _tensor(numbers, "tracked_min"), _tensor(numbers, "tracked_max")
    if low is None or high is None:
        return None, zero_point
    bits = int(str(numbers["quant_bits"]))
    limits = _given_limits(numbers)
    unsigned = IntegerType(max(limits.qmax if limits else 0, 1).bit_length(), signed=False)
    if limits == unsigned.range and zero_point is None:
        return scale_and_zero_point(low, high, unsigned, "affine")
    found, _ = scale_and_zero_point(low, high, IntegerType(bits, signed=True), "symmetric")
    return found, zero_point


def _legacy_dtype(place: TargetPlace, numbers: Mapping[str, object], zero_point: Tensor) -> str:
    smallest = _tensor(numbers, "tracked_min")
    negative = is_parameter(place.target) if smallest is None else bool((smallest < 0).any())
    signed = bool((zero_point < 0).any()) or (negative and not bool(zero_point.any()))
    return f"{'int' if signed else 'uint'}{numbers['quant_bits']}"


def _tensor(numbers: Mapping[str, object], key: str) -> Tensor | None:
    return torch.tensor(numbers[key], dtype=torch.float32) if key in numbers else None
