"""Every quantizer passes the conformance suite that `nni.testing.quantizers` ships."""

from torch import nn
from torch.optim import SGD

from nni.compression.base import Quantizer
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.quantization import (
    NaiveQuantizer,
    ObserverQuantizer,
    PtqQuantizer,
    QATQuantizer,
)
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


class TestObserverQuantizer(QuantizerConformance):
    quant_dtype = "int8"
    trains = False

    def make(self, model: nn.Module, config_list: list[Entry]) -> Quantizer:
        return ObserverQuantizer(model, config_list)
