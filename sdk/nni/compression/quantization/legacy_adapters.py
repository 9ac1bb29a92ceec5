"""Quantizers with the arguments and results that NNI 2.x documents.

Each takes an optimizer in place of an evaluator, returns the model from `compress`, and exports
calibrations with flat keys such as `weight_bits`. The caller trains the model.
"""

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nni.compression.base.compressor import Entry
from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.bnn_quantizer import BNNQuantizer
from nni.compression.quantization.calibration import from_documented, to_legacy
from nni.compression.quantization.dorefa_quantizer import DoReFaQuantizer
from nni.compression.quantization.legacy_quantizer import count_steps
from nni.compression.quantization.lsq_quantizer import LsqQuantizer
from nni.compression.quantization.naive_quantizer import NaiveQuantizer
from nni.compression.quantization.observer_quantizer import ObserverQuantizer
from nni.compression.quantization.qat_quantizer import QATQuantizer
from nni.compression.quantization.quantizer import Quantizer
from nni.compression.quantization.training_quantizer import TrainingQuantizer

Optimizer = torch.optim.Optimizer


@functools.cache
def warn_once(name: str) -> None:
    """Warn that a class has a newer form, the first time that it is used.

    Args:
        name: name of the newer class.
    """
    warnings.warn(
        f"this is the {name} of NNI 2.x; the newer one is nni.compression.quantization.{name}",
        DeprecationWarning,
        stacklevel=4,
    )


class _FlatExport(Quantizer):
    """Quantizer whose `export_model` returns a calibration with flat keys."""

    def export_model(  # type: ignore[override]  # flat keys are what NNI 2.x documents
        self,
        model_path: str | Path,
        calibration_path: str | Path | None = None,
        onnx_path: str | Path | None = None,
        input_shape: Sequence[int] | None = None,
        device: torch.device | str | None = None,
    ) -> dict[str, dict[str, object]]:
        """Unwrap and write the model as the base does; return the calibration with flat keys.

        Args:
            model_path: file of the state dict.
            calibration_path: file of the calibration; None for no file.
            onnx_path: file of the model in ONNX; None for no file.
            input_shape: shape of the input; needed for `onnx_path`.
            device: device of the model; None for the CPU.

        Returns:
            The calibration, with keys such as `weight_bits` and `tracked_min_input`.
        """
        return to_legacy(
            super().export_model(model_path, calibration_path, onnx_path, input_shape, device)
        )

    def export_model_save(
        self,
        model: nn.Module,
        model_path: str | Path,
        calibration_config: Mapping[str, Any] | None = None,
        *args: Any,  # noqa: ANN401 - those of the base
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Write a model's state dict, and a calibration of either form with flat keys.

        Args:
            model: an unwrapped model.
            model_path: file of its state dict.
            calibration_config: the calibration; None for none.
            args: further arguments of `Quantizer.export_model_save`.
            kwargs: likewise.
        """
        flat = (
            None if calibration_config is None else to_legacy(from_documented(calibration_config))
        )
        super().export_model_save(model, model_path, flat, *args, **kwargs)


class _WithOptimizer(_FlatExport, TrainingQuantizer):
    """Quantizer that steps with the caller's optimizer; `compress` wraps only."""

    def _follow(self, optimizer: Optimizer | None) -> None:
        if optimizer is not None:
            count_steps(optimizer, self.step_with_optimizer)

    def compress(self) -> nn.Module:  # type: ignore[override]  # NNI 2.x returns the model
        """Wrap the model unless it is wrapped; return it.

        Returns:
            The model, wrapped.
        """
        return self.wrap_model()


class LegacyQATQuantizer(_WithOptimizer, QATQuantizer):
    """`QATQuantizer` with the arguments of NNI 2.x; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        optimizer: optimizer of the model, whose steps count; None: call `step_with_optimizer`.
        dummy_input: example input of the model, for batch norms to fold.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or `optimizer` is none.

    Examples:
        >>> import warnings
        >>> warnings.simplefilter("ignore", DeprecationWarning)
        >>> from torch import nn
        >>> from nni.compression.pytorch.quantization import QAT_Quantizer
        >>> config_list = [{"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 8}]
        >>> model = QAT_Quantizer(nn.Sequential(nn.Linear(2, 2)), config_list).compress()
        >>> model[0].module.scale.shape
        torch.Size([])
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        optimizer: Optimizer | None = None,
        dummy_input: object = None,
    ) -> None:
        warn_once("QATQuantizer")
        super().__init__(model, config_list, dummy_input=dummy_input)
        self._follow(optimizer)


class LegacyLsqQuantizer(_WithOptimizer, LsqQuantizer):
    """`LsqQuantizer` with the arguments of NNI 2.x, integers signed; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0, of which dtype and scheme do not count.
        optimizer: optimizer of the model, to which the scales are added; None: add
            `parameter_group()` to your own.
        dummy_input: example input of the model, for batch norms to fold.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or `optimizer` is none.

    Examples:
        >>> import warnings
        >>> warnings.simplefilter("ignore", DeprecationWarning)
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pytorch.quantization import LsqQuantizer
        >>> model = nn.Sequential(nn.Linear(2, 2))
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> config_list = [{"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 8}]
        >>> quantizer = LsqQuantizer(model, config_list, sgd)
        >>> len(sgd.param_groups)
        2
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        optimizer: Optimizer | None = None,
        dummy_input: object = None,
    ) -> None:
        warn_once("LsqQuantizer")
        super().__init__(model, config_list, dummy_input=dummy_input)
        self._follow(optimizer)
        if optimizer is not None:
            optimizer.add_param_group(dict(self.parameter_group()))

    def check_target(self, settings: QuantizationSettings, place: TargetPlace) -> None:
        """Raise ConfigListError unless the algorithm can quantize a target.

        Args:
            settings: settings of the target.
            place: the target.
        """
        super().check_target(_signed(settings), place)

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return super().make_target_quantizer(_signed(settings), place)


class LegacyDoReFaQuantizer(_WithOptimizer, DoReFaQuantizer):
    """`DoReFaQuantizer` with the arguments of NNI 2.x; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        optimizer: optimizer of the model; None if there is none.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or `optimizer` is none.
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        optimizer: Optimizer | None = None,
    ) -> None:
        warn_once("DoReFaQuantizer")
        super().__init__(model, config_list)
        self._follow(optimizer)


class LegacyBNNQuantizer(_WithOptimizer, BNNQuantizer):
    """`BNNQuantizer` with the arguments of NNI 2.x; warns once.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        optimizer: optimizer of the model, after whose steps weights are clipped; None: call
            `step_with_optimizer`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or `optimizer` is none.
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        optimizer: Optimizer | None = None,
    ) -> None:
        warn_once("BNNQuantizer")
        super().__init__(model, config_list)
        self._follow(optimizer)


class LegacyNaiveQuantizer(_FlatExport, NaiveQuantizer):
    """`NaiveQuantizer` that exports calibrations in the format of NNI 2.x; same arguments."""


class LegacyObserverQuantizer(_FlatExport, ObserverQuantizer):
    """`ObserverQuantizer` that exports calibrations in the format of NNI 2.x; same arguments."""


def _signed(settings: QuantizationSettings) -> QuantizationSettings:
    return replace(settings, quant_dtype=f"int{settings.bits}", quant_scheme="symmetric")
