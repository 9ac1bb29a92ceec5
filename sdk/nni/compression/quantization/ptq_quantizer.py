"""Quantizer of a trained model by the ranges of an evaluation: post-training quantization."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from nni.compression.base.compressor import Entry
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.model_runs import eval_mode
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.target_space import first_output
from nni.compression.quantization.calibration import CalibrationConfig
from nni.compression.quantization.evaluation_quantizer import EvaluationQuantizer
from nni.compression.quantization.range_quantizer import Observing, RangeQuantizer


class PtqQuantizer(EvaluationQuantizer):
    """Quantizer of a trained model by the ranges that its tensors have in one evaluation.

    `compress` evaluates the model in eval mode and observes the smallest and largest value of each
    target. Nothing is trained.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        evaluator: its `evaluating_func` runs the model with some batches, of which the result does
            not count; about 100 samples are enough.
        is_bias_correction: whether the mean error of each output channel of a layer with a
            quantized weight is subtracted from its bias, after a second evaluation.
        dummy_input: example input of the model, on its device, or a tuple of them. If given, each
            batch norm that follows a selected convolution directly is folded into it.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or `evaluator` is none.

    Source: Krishnamoorthi, Quantizing Deep Convolutional Networks for Efficient Inference, 2018,
        section 3.1; bias correction: Nagel et al., Data-Free Quantization through Weight
        Equalization and Bias Correction, 2019, section 4.2.

    Departures: the mean error is that of the layer itself, by the inputs that it gets in the
        quantized model, so that errors of earlier layers are not corrected twice.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.quantization import PtqQuantizer
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> def evaluate(model):
        ...     return float(model(torch.tensor([[1.0, -1.0]])).sum())
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(print, sgd, print, evaluating_func=evaluate)
        >>> config_list = [{"op_types": ["Linear"], "target_names": ["_input_", "weight"]}]
        >>> model, calibration = PtqQuantizer(model, config_list, evaluator).compress()
        >>> calibration["0"]["_input_0"]["tracked_max"]
        1.0
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        evaluator: Evaluator,
        is_bias_correction: bool = False,  # noqa: FBT001, FBT002 - documented position
        *,
        dummy_input: object = None,
    ) -> None:
        self.is_bias_correction = is_bias_correction
        super().__init__(model, config_list, evaluator, dummy_input=dummy_input)

    def compress(self) -> tuple[nn.Module, CalibrationConfig]:
        """Observe ranges in one evaluation, quantize from then on; return model and calibration.

        Returns:
            The model, wrapped, and how each target is quantized.

        Raises:
            RuntimeError: the evaluator has no `evaluating_func`.
        """
        self.wrap_model()
        with eval_mode(self.bound_model), torch.no_grad():
            self._observe("always")
            try:
                self._evaluate()
            finally:
                self._observe("never")
            if self.is_bias_correction:
                self._correct_biases()
        return self.bound_model, self.get_calibration_config()

    def _observe(self, observing: Observing) -> None:
        """Let all quantizers observe and leave their targets as they are, or quantize them."""
        for _, quantizer in self.target_quantizers():
            assert isinstance(quantizer, RangeQuantizer)  # made above
            quantizer.observing = observing
            bypassed = quantizer.settings.apply_method == "bypass"
            quantizer.quantizing = observing == "never" and not bypassed

    def _correct_biases(self) -> None:
        errors = {
            name: MeanError()
            for name, wrapper in self._wrappers.items()
            if "weight" in wrapper.quantizers and _bias_of(wrapper) is not None
        }
        hooks = [
            self._wrappers[name].register_forward_hook(partial(_measure, error), with_kwargs=True)
            for name, error in errors.items()
        ]
        self._evaluate(hooks)
        for name, error in errors.items():
            bias = _bias_of(self._wrappers[name])
            assert bias is not None  # chosen so above
            bias.sub_(error.mean(bias))


class MeanError:
    """Mean difference of two outputs by channel, over many batches."""

    def __init__(self) -> None:
        self._sum: Tensor | None = None
        self._count = 0

    def add(self, difference: Tensor, channel_dim: int) -> None:
        """Add the differences of a batch to the sums by channel.

        Args:
            difference: any shape.
            channel_dim: dimension of the channels.
        """
        by_channel = difference.transpose(0, channel_dim).flatten(1)
        added = by_channel.sum(1)
        self._sum = added if self._sum is None else self._sum + added
        self._count += by_channel.shape[1]

    def mean(self, like: Tensor) -> Tensor:
        """Return the mean difference by channel, `(channels,)`; zeros if there was no batch.

        Args:
            like: `(channels,)`; what to return zeros for if there was no batch.
        """
        return torch.zeros_like(like) if self._sum is None else self._sum / self._count


def _bias_of(wrapper: ModuleWrapper) -> Tensor | None:
    """Return the bias of the first fused module, else of the layer; None if neither has one."""
    for module in (*wrapper.fused_modules[:1], wrapper.module):
        bias = getattr(module, "bias", None)
        if isinstance(bias, Tensor):
            return bias
    return None


def _measure(
    error: MeanError,
    wrapper: ModuleWrapper,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    _output: object,
) -> None:
    """Add the differences of a layer's outputs with quantized and with exact parameters."""
    exact = wrapper.effective_parameters()
    rounded = {
        name: wrapper.quantizers[name](value) if name in wrapper.quantizers else value
        for name, value in exact.items()
    }
    outputs = [
        first_output(functional_call(wrapper.module, values, args, kwargs))
        for values in (rounded, exact)
    ]
    linear = isinstance(wrapper.module, nn.Linear)
    error.add(outputs[0] - outputs[1], -1 if linear else 1)
