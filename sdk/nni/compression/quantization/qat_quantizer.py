"""Quantizer for training with simulated integers: quantization-aware training."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from nni.compression.base.compressor import Entry
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings, check_start_step
from nni.compression.quantization.range_quantizer import RangeQuantizer
from nni.compression.quantization.training_quantizer import TrainingQuantizer


class QATQuantizer(TrainingQuantizer):
    """Quantizer that simulates integers while the model trains, by the ranges it observes then.

    The range of a parameter is that of its current values; the range of an input or output is a
    moving average of both ends with decay 0.99. No gradient passes where a value is out of range.
    In eval mode scales stay as they are.

    Build the quantizer before the model is wrapped in `DataParallel` or
    `DistributedDataParallel`. Inputs and outputs with a scale for each channel need one run of the
    model before that, in training mode.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x, with 2 to 31 bits, or 1 unsigned; not changed.
        evaluator: trains the model; None if the caller does.
        quant_start_step: optimizer step from which on targets are quantized; ranges are observed
            from the first step on. Steps count from 1.
        dummy_input: example input of the model, on its device, or a tuple of them. If given, each
            batch norm that follows a selected convolution directly is folded into it.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Source: Jacob et al., Quantization and Training of Neural Networks for Efficient
        Integer-Arithmetic-Only Inference, 2018.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import QATQuantizer
        >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
        >>> model[0].weight.data = torch.tensor([[0.9, -3.0]])
        >>> config_list = [
        ...     {"op_types": ["Linear"], "target_names": ["weight"], "quant_dtype": "int3"}
        ... ]
        >>> quantizer = QATQuantizer(model, config_list)
        >>> model(torch.eye(2)).flatten()
        tensor([ 1., -3.], grad_fn=<ViewBackward0>)
    """

    signed_bits = (2, 31)
    unsigned_bits = (1, 31)

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        evaluator: Evaluator | None = None,
        quant_start_step: int = 0,
        *,
        dummy_input: object = None,
    ) -> None:
        check_start_step(quant_start_step, "quant_start_step")
        self.quant_start_step = quant_start_step
        super().__init__(model, config_list, evaluator, dummy_input=dummy_input)

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        start = settings.quant_start_step
        return RangeQuantizer(
            replace(settings, apply_method=settings.apply_method or "qat_clamp_round"),
            place,
            average="latest" if place.is_parameter else "moving",
            start_step=self.quant_start_step if start is None else start,
        )
