"""Quantizer of the weights of a trained model that keeps the outputs of each layer: GPTQ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.base.arguments import check_count
from nni.compression.base.compressor import Entry
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.model_runs import eval_mode
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.target_quantizer import TargetPlace
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.config.settings import ConfigListError
from nni.compression.masking.granularity import block_sizes
from nni.compression.quantization.calibration import CalibrationConfig
from nni.compression.quantization.evaluation_quantizer import EvaluationQuantizer
from nni.compression.quantization.gptq import (
    RoundedWeight,
    gptq_rounded,
    input_hessian,
    squared_output_error,
)
from nni.compression.quantization.range_quantizer import Observing, RangeQuantizer


@dataclass(frozen=True, slots=True)
class LayerError:
    """Relative squared errors of a layer's outputs, rounded to nearest and by GPTQ."""

    nearest: float
    """If each weight is rounded to the nearest integer."""
    gptq: float
    """With the weights that the quantizer has set."""


class GptqQuantizer(EvaluationQuantizer):
    """Quantizer that rounds weights of Linear layers so that the layers' outputs change little.

    `compress` runs calibration batches through the model in eval mode and collects the second
    moments of the inputs of each layer. Weights are rounded column by column; each error is
    compensated by the columns that follow. Nothing is trained. The weights of the model are
    replaced by the rounded values.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x that select weights of Linear layers; not changed.
            `granularity` is `default`, `out_channel`, or block sizes such as `[1, 32]`: one scale
            for 32 inputs of each output.
        evaluator: its `evaluating_func` runs the model with some batches, of which the result does
            not count; about 128 samples are enough.
        damping: part of the mean second moment that is added to each of them, > 0.
        block_size: columns after which errors are spread over all that follow; it changes the
            speed only.
        act_order: whether columns are rounded in descending order of the second moment of their
            input.
        sequential: whether each layer is calibrated with the inputs that it gets after the layers
            before it were rounded, which needs an evaluation for each layer; else one evaluation
            of the original model serves all.

    Attributes:
        layer_errors: `LayerError` by module name, after `compress`.

    Raises:
        ConfigListError: the configuration breaks a rule, or selects anything but weights of Linear.
        TypeError: `model` is no module or holds wrappers already, or `evaluator` is none.
        ValueError: `damping` or `block_size` is out of range.

    Source: Frantar et al., GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
        Transformers, 2022.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> from nni.compression.quantization import GptqQuantizer
        >>> model = nn.Sequential(nn.Linear(8, 4))
        >>> def evaluate(model):
        ...     return float(model(torch.randn(64, 8)).sum())
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(print, sgd, print, evaluating_func=evaluate)
        >>> config_list = [
        ...     {"op_types": ["Linear"], "target_names": ["weight"], "quant_dtype": "int4"}
        ... ]
        >>> quantizer = GptqQuantizer(model, config_list, evaluator)
        >>> model, calibration = quantizer.compress()
        >>> calibration["0"]["weight"]["quant_bits"]
        4
        >>> quantizer.layer_errors["0"].gptq < 0.1
        True
    """

    kinds = ("weight",)

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        evaluator: Evaluator,
        *,
        damping: float = 0.01,
        block_size: int = 128,
        act_order: bool = False,
        sequential: bool = True,
    ) -> None:
        check_count("block_size", block_size)
        if not damping > 0:
            raise ValueError(f"damping must be > 0, got {damping}")
        self.damping = damping
        self.block_size = block_size
        self.act_order = act_order
        self.sequential = sequential
        self.layer_errors: dict[str, LayerError] = {}
        super().__init__(model, config_list, evaluator)

    def check_target(self, settings: QuantizationSettings, place: TargetPlace) -> None:  # noqa: D102 - see the base
        super().check_target(settings, place)
        if place.target != "weight" or place.module_type != "Linear" or place.fused_types:
            raise ConfigListError(
                "config_list",
                f"has {place.where} of a {place.module_type} as target; GptqQuantizer rounds "
                "weights of Linear layers without fuse_names only: exclude it, or choose "
                "PtqQuantizer",
            )

    def compress(self) -> tuple[nn.Module, CalibrationConfig]:
        """Collect input moments, round the weights in place; return model and calibration.

        Returns:
            The model, wrapped, and how each target is quantized.

        Raises:
            RuntimeError: the evaluator has no `evaluating_func`.
            ValueError: a layer did not run, or its inputs are not finite.
        """
        self.wrap_model()
        self.layer_errors = {}
        with eval_mode(self.bound_model), torch.no_grad():
            for one in self._rounded_weights().values():
                one.quantizing = False
            self._observe_inputs("always")
            try:
                for names in self._order():
                    for name, hessian in self._hessians(names).items():
                        self._round(name, hessian)
            finally:
                self._observe_inputs("never")
        return self.bound_model, self.get_calibration_config()

    def _observe_inputs(self, observing: Observing) -> None:
        """Start or stop observing the ranges of inputs, which runtimes need."""
        for place, quantizer in self.target_quantizers():
            assert isinstance(quantizer, RangeQuantizer)  # made above
            if not place.is_parameter:
                quantizer.observing = observing

    def _rounded_weights(self) -> dict[str, RangeQuantizer]:
        """Return the quantizers of the weights by the name of their module."""
        return {
            place.module_name: quantizer
            for place, quantizer in self.target_quantizers()
            if isinstance(quantizer, RangeQuantizer)
            and place.target == "weight"
            and quantizer.settings.apply_method != "bypass"
        }

    def _order(self) -> list[list[str]]:
        """Return all layers as one group, or if sequential each one alone, in running order."""
        names = list(self._rounded_weights())
        if not self.sequential:
            return [names]
        order: dict[str, None] = {}

        def noted(name: str) -> Callable[[Tensor], None]:
            return lambda _rows: order.setdefault(name)

        self._evaluate_layers({name: noted(name) for name in names})
        return [[name] for name in {**order, **dict.fromkeys(names)}]

    def _hessians(self, names: Sequence[str]) -> dict[str, Tensor]:
        """Run the calibration batches; return the Hessian of the output error of each layer."""
        sums: dict[str, Tensor] = {}

        def adder(name: str) -> Callable[[Tensor], None]:
            def add(rows: Tensor) -> None:
                found = input_hessian(rows)
                sums[name] = sums[name] + found if name in sums else found

            return add

        self._evaluate_layers({name: adder(name) for name in names})
        idle = [name for name in names if name not in sums]
        if idle:
            raise ValueError(
                f"{idle[0]} did not run in the evaluation; exclude it in config_list, or evaluate "
                "with batches that reach it"
            )
        return sums

    def _evaluate_layers(self, observers: dict[str, Callable[[Tensor], None]]) -> None:
        """Run the calibration batches; pass the input of each named layer to its observer."""
        hooks = [
            self._wrappers[name].register_forward_hook(_observing(observer), with_kwargs=True)
            for name, observer in observers.items()
        ]
        self._evaluate(hooks)

    def _round(self, name: str, hessian: Tensor) -> None:
        """Round the weight of a layer in place; load its scales, and record its errors."""
        wrapper, quantizer = self._wrappers[name], self._rounded_weights()[name]
        parameter = wrapper.parameter("weight")
        before = parameter.detach().clone()
        quantizer.quantizing = True
        nearest = quantizer(before)
        found = self._rounded(before, hessian, quantizer)
        shape = quantizer.scale.shape
        scale, zero_point = found.scale.reshape(shape), found.zero_point.reshape(shape)
        quantizer.load({"scale": scale.tolist(), "zero_point": zero_point.tolist()})
        parameter.copy_(quantizer(found.values))
        total = squared_output_error(before, hessian)
        errors = (squared_output_error(one - before, hessian) for one in (nearest, parameter))
        self.layer_errors[name] = LayerError(*(one / total if total else 0.0 for one in errors))

    def _rounded(self, weight: Tensor, hessian: Tensor, quantizer: RangeQuantizer) -> RoundedWeight:
        granularity = quantizer.settings.granularity
        height, width = weight.shape
        if granularity != "default":
            height, width = block_sizes(granularity, weight.shape)
        return gptq_rounded(
            weight,
            hessian,
            quantizer.integer,
            quantizer.settings.quant_scheme,
            (height, width),
            damping=self.damping,
            block_size=self.block_size,
            by_activation=self.act_order,
        )


def _observing(observer: Callable[[Tensor], None]) -> Callable[..., None]:
    def hook(
        _wrapper: ModuleWrapper, args: tuple[Any, ...], kwargs: dict[str, Any], _output: object
    ) -> None:
        observer((args[0] if args else kwargs["input"]).detach())

    return hook
