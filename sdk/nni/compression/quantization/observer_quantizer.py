"""Quantizer of a trained model by histograms of what the caller runs through it."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from nni.compression.base.compressor import Entry
from nni.compression.base.numerics import IntegerType
from nni.compression.base.target_quantizer import Calibration, TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.histogram import BINS, best_range, merged
from nni.compression.quantization.quantizer import Quantizer
from nni.compression.quantization.range_quantizer import Average, RangeQuantizer

_REDUCED_BITS = 7
"""Integers of activations are 0 to 127: sums of products of bytes then fit 16 bits."""


class ObserverQuantizer(Quantizer):
    """Quantizer of a trained model by what it has computed from construction to `compress`.

    Before `compress` the model only records; run some batches through it. `compress` chooses the
    ranges, replaces weights by their rounded values and quantizes inputs and outputs from then on.
    About 100 samples are enough.

    Weights are signed and symmetric, with one scale for the tensor. Inputs and outputs are
    unsigned and affine, with integers from 0 to 127, in the range with the smallest squared
    error.

    Args:
        model: an unwrapped model in eval mode; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x with 8 bits, of which dtype, scheme and granularity
            do not count.
        optimizer: not used; part of the documented signature.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: the model is in training mode.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import ObserverQuantizer
        >>> model = nn.Sequential(nn.ReLU()).eval()
        >>> quantizer = ObserverQuantizer(model, [{"op_types": ["ReLU"]}])
        >>> _ = model(torch.linspace(0, 127, 128))
        >>> model = quantizer.compress()
        >>> round(float(model(torch.tensor(6.2))))
        6
    """

    signed_bits = (8, 8)
    unsigned_bits = (8, 8)

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        del optimizer  # nothing is trained here
        if getattr(model, "training", False):
            raise ValueError("model must be in eval mode; call model.eval() first")
        super().__init__(model, config_list)

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        settings = replace(settings, granularity="default", apply_method="clamp_round")
        if place.is_parameter:
            settings = replace(settings, quant_dtype="int8", quant_scheme="symmetric")
            return self._observer(settings, place)
        settings = replace(settings, quant_dtype="uint8", quant_scheme="affine")
        return _recording(HistogramQuantizer(settings, place))

    def _observer(self, settings: QuantizationSettings, place: TargetPlace) -> RangeQuantizer:
        average: Average = "latest" if place.is_parameter else "extreme"
        return _recording(RangeQuantizer(settings, place, average=average))

    def compress(self) -> nn.Module:
        """Choose ranges, round the weights in place, quantize from now on; return the model.

        Returns:
            The model, wrapped.
        """
        self.wrap_model()
        for place, quantizer in self.target_quantizers():
            assert isinstance(quantizer, RangeQuantizer)  # made above
            quantizer.observing = "never"
            quantizer.quantizing = quantizer.settings.apply_method != "bypass"
            if isinstance(quantizer, HistogramQuantizer):
                quantizer.choose_range()
            if place.is_parameter:
                parameter = self._wrappers[place.module_name].parameter(place.target)
                parameter.data.copy_(quantizer(parameter.detach()))
                quantizer.load({"scale": quantizer.scale.tolist()})  # the range of the integers
        return self.bound_model


class HistogramQuantizer(RangeQuantizer):
    """Quantizer that observes a target's histogram, and rounds in the range of least error.

    Args:
        settings: settings of the target.
        place: the target.

    Attributes:
        histogram: `(bins,)`, number of values by bin of the observed range.
    """

    histogram: Tensor

    def __init__(self, settings: QuantizationSettings, place: TargetPlace) -> None:
        super().__init__(settings, place, average="extreme")
        self.register_buffer("histogram", torch.zeros(BINS))

    @property
    def integer(self) -> IntegerType:
        """Return unsigned integers of 7 bits, 0 to 127, whatever the settings say."""
        return IntegerType(_REDUCED_BITS, signed=False)

    def observe(self, value: Tensor) -> None:
        """Add values to the histogram.

        Args:
            value: any shape, not empty.
        """
        histogram, smallest, largest = merged(self.histogram, self.smallest, self.largest, value)
        self.histogram.copy_(histogram)
        self.smallest.copy_(smallest)
        self.largest.copy_(largest)
        self.observations.add_(1)

    def choose_range(self) -> None:
        """Narrow the range to that with the smallest squared error, and compute the scale."""
        if int(self.observations):
            ends = best_range(self.histogram, self.smallest, self.largest, self.integer, "affine")
            self.smallest.copy_(ends[0])
            self.largest.copy_(ends[1])
            self._update_scale()

    def calibration(self) -> Calibration:
        """Return the calibration of the target, with the bounds of its integers."""
        qmin, qmax = self.integer.range
        return {**super().calibration(), "tracked_qmin": qmin, "tracked_qmax": qmax}


def _recording(quantizer: RangeQuantizer) -> RangeQuantizer:
    """Let a quantizer observe in all modes, and leave its target as it is; return it."""
    quantizer.observing = "always"
    quantizer.quantizing = False
    return quantizer
