"""Base of quantizers that observe ranges in evaluations of a trained model and train nothing."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.arguments import check_evaluator
from nni.compression.base.compressor import Entry
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.quantizer import Quantizer
from nni.compression.quantization.range_quantizer import Average, RangeQuantizer


class EvaluationQuantizer(Quantizer):
    """Quantizer whose targets observe their ranges only while the algorithm evaluates the model.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        evaluator: its `evaluating_func` runs the model with some batches.
        dummy_input: see `Quantizer`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or `evaluator` is none.
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        evaluator: Evaluator,
        *,
        dummy_input: object = None,
    ) -> None:
        check_evaluator(evaluator)
        self._evaluated_by = evaluator
        super().__init__(model, config_list, evaluator, dummy_input=dummy_input)

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        method = settings.apply_method or "clamp_round"
        return self._observer(replace(settings, apply_method=method), place)

    def _observer(self, settings: QuantizationSettings, place: TargetPlace) -> RangeQuantizer:
        average: Average = "latest" if place.is_parameter else "extreme"
        made = RangeQuantizer(settings, place, average=average)
        made.observing = "never"
        return made

    def _evaluate(self, hooks: Sequence[RemovableHandle] = ()) -> None:
        """Run one evaluation of the model; remove hooks at its end.

        Args:
            hooks: handles of hooks that are registered for this evaluation.
        """
        evaluator = self._evaluated_by
        evaluator.bind_model(self.bound_model)
        try:
            evaluator.register_hooks(hooks)
            evaluator.evaluate()
        finally:
            evaluator.unbind_model()
            for hook in hooks:
                hook.remove()
