"""Every quantizer passes the conformance suite that `nni.testing.quantizers` ships."""

import pytest
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.base import ModuleWrapper, Quantizer
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.quantization import (
    BNNQuantizer,
    DoReFaQuantizer,
    GptqQuantizer,
    LsqPlusQuantizer,
    LsqQuantizer,
    NaiveQuantizer,
    ObserverQuantizer,
    PtqQuantizer,
    QATQuantizer,
)
from nni.compression.quantization.calibration import to_legacy
from nni.compression.quantization.legacy_adapters import LegacyQATQuantizer, warn_once
from nni.compression.quantization.legacy_quantizer import LegacyQuantizer
from nni.testing.quantizers import Entry, QuantizerConformance


class TestNaiveQuantizer(QuantizerConformance):
    target_names = ("weight",)
    quant_dtype = "int8"

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return NaiveQuantizer(model, config_list)


class TestQATQuantizer(QuantizerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return QATQuantizer(model, config_list)


class TestQATQuantizerWithFoldedBatchNorm(QuantizerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return QATQuantizer(model, config_list, dummy_input=self.make_input())


class TestQATQuantizerWithAScalePerChannel(QuantizerConformance):
    op_types = ("Conv2d",)

    def config_list(self) -> list[Entry]:
        scale = {"quant_scheme": "affine", "granularity": "per_channel"}
        targets = {"_input_": scale, "weight": {"granularity": "out_channel"}, "_output_": scale}
        return [{**entry, "target_settings": targets} for entry in super().config_list()]

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return QATQuantizer(model, config_list)


class TestPtqQuantizer(QuantizerConformance):
    trains = False

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        evaluator = TorchEvaluator(
            print,
            SGD(model.parameters(), lr=0.1),
            print,
            evaluating_func=lambda one: float(one(self.make_input()).sum()),
        )
        return PtqQuantizer(model, config_list, evaluator, is_bias_correction=True)


class TestGptqQuantizer(QuantizerConformance):
    op_types = ("Linear",)
    target_names = ("weight",)
    trains = False

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        evaluator = TorchEvaluator(
            print,
            SGD(model.parameters(), lr=0.1),
            print,
            evaluating_func=lambda one: float(one(self.make_input()).sum()),
        )
        return GptqQuantizer(model, config_list, evaluator)


class TestObserverQuantizer(QuantizerConformance):
    quant_dtype = "int8"
    trains = False

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return ObserverQuantizer(model, config_list)


class TestLsqQuantizer(QuantizerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return LsqQuantizer(model, config_list)


class TestLsqQuantizerWithFoldedBatchNorm(QuantizerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return LsqQuantizer(model, config_list, dummy_input=self.make_input())


class TestLsqPlusQuantizer(QuantizerConformance):
    def config_list(self) -> list[Entry]:
        return [{**entry, "quant_scheme": "affine"} for entry in super().config_list()]

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return LsqPlusQuantizer(model, config_list)


class TestDoReFaQuantizer(QuantizerConformance):
    def config_list(self) -> list[Entry]:
        return [
            {"op_types": ["Conv2d", "Linear"], "target_names": ["weight"], "quant_dtype": "int2"},
            {"op_types": ["ReLU"], "quant_dtype": "uint2"},
        ]

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return DoReFaQuantizer(model, config_list, gradient_bits=4)


class TestBNNQuantizer(QuantizerConformance):
    def config_list(self) -> list[Entry]:
        return [
            {"op_types": ["Conv2d", "Linear"], "target_names": ["weight"], "quant_dtype": "int1"},
            {"op_names": ["2"], "quant_dtype": "int1"},
        ]

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return BNNQuantizer(model, config_list)


class Rounding(LegacyQuantizer):
    """Quantizer of one's own by the methods of NNI 2.x."""

    def quantize_weight(self, wrapper: ModuleWrapper, **kwargs: object) -> Tensor:
        return self._rounded(super().quantize_weight(wrapper, **kwargs))

    def quantize_input(self, inputs: Tensor, wrapper: ModuleWrapper, **kwargs: object) -> Tensor:
        return self._rounded(inputs)

    def quantize_output(self, output: Tensor, wrapper: ModuleWrapper, **kwargs: object) -> Tensor:
        return self._rounded(output)

    def _rounded(self, value: Tensor) -> Tensor:
        return (value * 32).round().clamp(-7, 7) / 32


class TestQuantizerByMethods(QuantizerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return Rounding(model, config_list)


class TestLegacyAdapter(QuantizerConformance):
    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        warn_once.cache_clear()
        with pytest.deprecated_call():
            return LegacyQATQuantizer(model, config_list, SGD(model.parameters(), lr=0.1))

    def calibration_of(self, quantizer: Quantizer) -> dict[str, dict[str, object]]:
        return to_legacy(quantizer.get_calibration_config())
