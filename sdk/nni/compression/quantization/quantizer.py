"""Base of all quantizers: targets are represented by integers while the model trains and runs."""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import nn

from nni.compression.base.compressor import Compressor, Entry
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.folding import folding_problem
from nni.compression.base.inspection import module_infos
from nni.compression.base.model_runs import call_model, eval_mode
from nni.compression.base.module_wrapper import FusedModule, ModuleWrapper
from nni.compression.base.onnx_export import check_onnx_arguments, export_onnx
from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
from nni.compression.config.quantization_defaults import TENSOR_KINDS, TensorKind
from nni.compression.config.quantization_plan import (
    QuantizationPlan,
    fused_names,
    kind_of,
    quantization_plan,
)
from nni.compression.config.quantization_settings import FIRST_INPUT, QuantizationSettings
from nni.compression.config.settings import ConfigListError
from nni.compression.quantization.batch_norm_pairs import batch_norm_pairs
from nni.compression.quantization.calibration import (
    CalibrationConfig,
    check_bits,
    from_documented,
)
from nni.compression.quantization.qdq.simulation import export_wrapped
from nni.compression.quantization.range_quantizer import RangeQuantizer

_logger = logging.getLogger(__name__)

_OBSERVED = QuantizationSettings(apply_method="bypass")
"""Settings of inputs of which only the range is wanted."""


class Quantizer(Compressor):
    """Compressor that simulates integers for parameters, inputs and outputs of modules.

    A quantizer of one's own implements `make_target_quantizer`.
    `nni.testing.quantizers.QuantizerConformance` has the tests that it must pass.

    The range of the input of every module with a quantized weight is observed, also if the input is
    not quantized: runtimes need it.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        evaluator: what trains or evaluates the model; None if the caller does.
        dummy_input: example input of the model, on its device, or a tuple of them. If given, each
            batch norm that follows a selected convolution directly is folded into it.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.base import Quantizer, TargetQuantizer
        >>> class Rounded(TargetQuantizer):
        ...     def forward(self, value):
        ...         return value + (value.round() - value).detach()
        >>> class RoundingQuantizer(Quantizer):
        ...     def make_target_quantizer(self, settings, place):
        ...         return Rounded(settings, place)
        >>> model = nn.Sequential(nn.ReLU())
        >>> quantizer = RoundingQuantizer(model, [{"op_types": ["ReLU"]}])
        >>> model(torch.tensor([-1.2, 1.2]))
        tensor([0., 1.])
    """

    signed_bits = (2, 32)
    """Smallest and largest number of bits of signed integers that the algorithm has."""
    unsigned_bits = (1, 32)
    """Smallest and largest number of bits of unsigned integers that the algorithm has."""
    kinds: tuple[TensorKind, ...] = TENSOR_KINDS
    """Kinds of tensors that the algorithm quantizes; a bias counts as a weight."""

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        evaluator: Evaluator | None = None,
        *,
        dummy_input: object = None,
    ) -> None:
        self._dummy_input = dummy_input
        self._fused: dict[str, FusedModule] = {}
        super().__init__(model, config_list, evaluator)

    @abstractmethod
    def make_target_quantizer(
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        """Return a new quantizer of one target.

        Args:
            settings: settings of the target.
            place: the target.
        """

    def check_target(self, settings: QuantizationSettings, place: TargetPlace) -> None:
        """Raise ConfigListError unless the algorithm supports the target's kind and bits.

        Args:
            settings: settings of the target.
            place: the target.

        Raises:
            ConfigListError: its kind is another one, or the number of bits is out of range.
        """
        if kind_of(place.target) not in self.kinds:
            raise ConfigListError(
                "config_list",
                f"has {place.where} as target; {type(self).__name__} quantizes only "
                f"{', '.join(self.kinds)}: leave it out of target_names or quant_types",
            )
        least, most = self.signed_bits if settings.signed else self.unsigned_bits
        if not least <= settings.bits <= most:
            kind = "int" if settings.signed else "uint"
            raise ConfigListError(
                "config_list",
                f"has {settings.quant_dtype} for {place.where}; {type(self).__name__} needs "
                f"{kind}{least} to {kind}{most}",
            )

    def target_quantizers(self) -> Iterator[tuple[TargetPlace, TargetQuantizer]]:
        """Yield place and quantizer of all targets, those that only observe included.

        Yields:
            The target and its quantizer, in the order of the model.
        """
        for wrapper in self._wrappers.values():
            for quantizer in wrapper.quantizers.values():
                assert isinstance(quantizer, TargetQuantizer)  # wrappers hold no other
                yield quantizer.place, quantizer

    def step_with_optimizer(self) -> None:
        """Count one optimizer step; an evaluator calls it, and so does one's own training."""
        for _, quantizer in self.target_quantizers():
            quantizer.step()

    def get_calibration_config(self) -> CalibrationConfig:
        """Return types, scales, zero points and observed ranges, by module and target.

        Returns:
            By module and target name; numbers and lists only, so that it can be written as JSON.
        """
        found: CalibrationConfig = {name: {} for name in self._wrappers}
        for place, quantizer in self.target_quantizers():
            calibration = quantizer.calibration()
            if calibration:
                found[place.module_name][place.target] = calibration
        return found

    def load_calibration_config(
        self, calibration_config: Mapping[str, Mapping[str, object]]
    ) -> None:
        """Load scales and ranges of a quantizer; log modules that only one of the two has.

        Args:
            calibration_config: from `get_calibration_config` or `export_model`, in the form of NNI
                3.0 or 2.x. Modules that it lacks, and those that are not quantized here, are
                logged as warnings.

        Raises:
            ValueError: a target has another number of bits there; nothing is changed then.
        """
        found = from_documented(calibration_config)
        for name in found.keys() - self._wrappers.keys():
            _logger.warning("calibration_config has %s, which is not quantized here", name)
        for name in self._wrappers.keys() - found.keys():
            _logger.warning("calibration_config lacks %s, which starts anew", name)
        pairs = [
            (quantizer, found[place.module_name][place.target])
            for place, quantizer in self.target_quantizers()
            if place.target in found.get(place.module_name, {})
        ]
        for quantizer, calibration in pairs:
            if quantizer.settings.apply_method != "bypass":
                check_bits(calibration, quantizer)
        for quantizer, calibration in pairs:
            with torch.no_grad():
                quantizer.load(calibration)

    def update_calibration_config(
        self, calibration_config: Mapping[str, Mapping[str, object]]
    ) -> None:
        """Take over scales and ranges: the name of `load_calibration_config` in NNI 3.0.

        Args:
            calibration_config: see there.
        """
        self.load_calibration_config(calibration_config)

    def export_model(
        self,
        model_path: str | Path,
        calibration_path: str | Path | None = None,
        onnx_path: str | Path | None = None,
        input_shape: Sequence[int] | None = None,
        device: torch.device | str | None = None,
    ) -> CalibrationConfig:
        """Unwrap the model; write its state dict and requested files; return the calibration.

        The files are written by `torch.save`; they hold tensors, numbers, strings and lists only.

        Args:
            model_path: file of the state dict; keys and values are those of a model that was never
                quantized, batch norms included.
            calibration_path: file of the calibration; None for no file.
            onnx_path: file of the quantized model in ONNX, as `quantization.export_onnx` writes it
                for onnxruntime; None for no file.
            input_shape: shape of its input; needed for `onnx_path`.
            device: device of the model; None for the CPU.

        Returns:
            The calibration, as `get_calibration_config`.

        Raises:
            ValueError: `onnx_path` is given without `input_shape`; nothing is written then.
        """
        check_onnx_arguments(onnx_path, input_shape)
        calibration = self.get_calibration_config()
        if onnx_path is not None and input_shape is not None:
            example = torch.zeros(*input_shape, device=torch.device(device or "cpu"))
            export_wrapped(self.wrap_model(), example, onnx_path)
        model = self.unwrap_model()
        self.export_model_save(model, model_path, calibration, calibration_path)
        return calibration

    def export_model_save(
        self,
        model: nn.Module,
        model_path: str | Path,
        calibration_config: Mapping[str, object] | None = None,
        calibration_path: str | Path | None = None,
        onnx_path: str | Path | None = None,
        input_shape: Sequence[int] | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        """Write a model's state dict; calibration and unquantized ONNX if paths are given.

        Args:
            model: an unwrapped model.
            model_path: file of its state dict.
            calibration_config: the calibration; None for none.
            calibration_path: file of the calibration; None for no file.
            onnx_path: file of the model in ONNX; None for no file.
            input_shape: shape of the input; needed for `onnx_path`.
            device: device of the model; None for the CPU.

        Raises:
            ValueError: `onnx_path` is given without `input_shape`; nothing is written then.
        """
        check_onnx_arguments(onnx_path, input_shape)
        torch.save(model.state_dict(), model_path)
        if calibration_path is not None and calibration_config is not None:
            torch.save(calibration_config, calibration_path)
        if onnx_path is not None and input_shape is not None:
            example = torch.zeros(*input_shape, device=torch.device(device or "cpu"))
            export_onnx(model, (example,), onnx_path)

    def record_shape(self, model: nn.Module, dummy_input: object) -> None:
        """Run the model once to give new range quantizers their shapes; count no observation.

        No range counts as observed by it. `DataParallel` needs it for inputs and outputs with a
        scale for each channel.

        Args:
            model: the model, wrapped.
            dummy_input: its example input, on its device, or a tuple of them.
        """
        fresh = [
            (quantizer, quantizer.training)
            for _, quantizer in self.target_quantizers()
            if isinstance(quantizer, RangeQuantizer) and not int(quantizer.observations)
        ]
        with eval_mode(model), torch.no_grad():
            for quantizer, _ in fresh:
                quantizer.training = True
            call_model(model, dummy_input)
        for quantizer, training in fresh:
            quantizer.training = training
            quantizer.observations.zero_()

    def find_conv_bn_patterns(self, model: nn.Module, dummy_input: object) -> list[tuple[str, str]]:
        """Return each convolution with the batch norm that directly follows it.

        Args:
            model: an unwrapped model.
            dummy_input: its example input, on its device, or a tuple of them.

        Returns:
            Dotted names of convolution and batch norm.
        """
        return batch_norm_pairs(model, dummy_input)

    def _make_wrappers(
        self, model: nn.Module, config_list: Sequence[Entry]
    ) -> Mapping[str, ModuleWrapper]:
        infos = module_infos(model)
        plan = quantization_plan(config_list, infos, self.kinds)
        fused = fused_names(config_list, infos, plan)
        if self._dummy_input is not None:
            pairs = batch_norm_pairs(model, self._dummy_input)
            taken = {one for group in fused.items() for one in (group[0], *group[1])}
            fused.update(
                (layer, (norm,))
                for layer, norm in pairs
                if layer in plan and layer not in taken and norm not in taken
            )
        wrappers = {
            name: self._wrapper(model, name, targets, fused.get(name, ()))
            for name, targets in _observed(plan).items()
        }
        followers = [name for group in fused.values() for name in group]
        self._fused = {name: FusedModule(model.get_submodule(name), name) for name in followers}
        return wrappers

    def _all_wrappers(self) -> Iterable[ModuleWrapper]:
        return [*self._wrappers.values(), *self._fused.values()]

    def _wrapper(
        self,
        model: nn.Module,
        name: str,
        targets: Mapping[str, QuantizationSettings],
        fused: tuple[str, ...],
    ) -> ModuleWrapper:
        module = model.get_submodule(name)
        followers = tuple(model.get_submodule(one) for one in fused)
        problem = folding_problem(module, followers) if followers else None
        if problem:
            raise ConfigListError(
                "config_list fuse_names", f"cannot join {', '.join((name, *fused))}: {problem}"
            )
        fused_types = tuple(type(one).__name__ for one in followers)
        quantizers = {
            target: self._target_quantizer(
                settings, TargetPlace(name, target, type(module).__name__, fused_types)
            )
            for target, settings in targets.items()
        }
        wrapper = ModuleWrapper(module, name, {}, quantizers, followers)
        _start_quantizers(wrapper)
        return wrapper

    def _target_quantizer(
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        if settings.apply_method == "bypass":
            return self._observer(settings, place)
        self.check_target(settings, place)
        return self.make_target_quantizer(settings, place)

    def _observer(self, settings: QuantizationSettings, place: TargetPlace) -> RangeQuantizer:
        """Return an observer of the range of a target that is not quantized."""
        return RangeQuantizer(settings, place, average="moving")


def _start_quantizers(wrapper: ModuleWrapper) -> None:
    """Move a module's quantizers to its device; initialise those of parameters by their values."""
    parameters = {name: one.detach() for name, one in wrapper.effective_parameters().items()}
    any_tensor = next(iter((*wrapper.module.parameters(), *wrapper.module.buffers())), None)
    if any_tensor is not None:
        wrapper.quantizers.to(any_tensor.device)
    for target, quantizer in wrapper.quantizers.items():
        assert isinstance(quantizer, TargetQuantizer)  # wrappers hold no other
        if target not in parameters:
            continue
        try:
            quantizer.start(parameters[target])
        except ValueError as error:
            where = f"config_list target {target} of {wrapper.module_name}:"
            raise ConfigListError(where, str(error)) from error


def _observed(plan: QuantizationPlan) -> QuantizationPlan:
    """Return a plan that also observes inputs of modules with quantized weights, if not targets."""
    return {
        name: {FIRST_INPUT: _OBSERVED, **targets}
        if "weight" in targets and not any(one.startswith("_input_") for one in targets)
        else targets
        for name, targets in plan.items()
    }
