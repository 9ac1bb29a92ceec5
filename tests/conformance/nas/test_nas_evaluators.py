"""Every evaluator passes the conformance suite that `nni.testing.nas_evaluators` ships."""

from typing import Any

import pytest
from torch import nn

import nni
from nni.nas.evaluator import (
    Evaluator,
    FunctionalEvaluator,
    MultiObjectiveEvaluator,
    MutableEvaluator,
)
from nni.nas.evaluator.pytorch import (
    Classification,
    ClassificationModule,
    Lightning,
    Regression,
    Trainer,
    parameter_count,
)
from nni.testing.nas_evaluators import NasEvaluatorConformance
from tests.support.lightning_tasks import QUIET, loader, network

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]
Cases = list[tuple[MutableEvaluator, dict[str, Any]]]
RATE = nni.choice("rate", [0.1, 0.2])
TRAINING = {"max_epochs": 1, **QUIET}


def report(model: nn.Module, scale: float = 1.0) -> None:
    nni.report_intermediate_result({"default": 0.0, "scale": scale})
    nni.report_final_result(scale * parameter_count(model))


class TestFunctional(NasEvaluatorConformance):
    def make(self) -> Evaluator:
        return FunctionalEvaluator(report)

    def make_model(self) -> Any:
        return network()

    def mutable_cases(self) -> Cases:
        return [(FunctionalEvaluator(report, scale=RATE), {"rate": 0.2})]


class TestMultiObjective(NasEvaluatorConformance):
    def make(self) -> Evaluator:
        inner = FunctionalEvaluator(report)
        return MultiObjectiveEvaluator(inner, {"parameters": parameter_count})

    def make_model(self) -> Any:
        return network()

    def mutable_cases(self) -> Cases:
        inner = FunctionalEvaluator(report, scale=RATE)
        return [(MultiObjectiveEvaluator(inner, {"size": parameter_count}), {"rate": 0.1})]


class TestClassification(NasEvaluatorConformance):
    def make(self, **kwargs: Any) -> Any:
        data = {"train_dataloaders": loader(), "val_dataloaders": loader(8)}
        return Classification(num_classes=2, **data, **kwargs, **TRAINING)

    def make_model(self) -> Any:
        return network()

    def mutable_cases(self) -> Cases:
        return [
            (self.make(learning_rate=RATE), {"rate": 0.2}),
            (self.make(accumulate_grad_batches=nni.choice("steps", [1, 2])), {"steps": 2}),
        ]


class TestRegression(NasEvaluatorConformance):
    def make(self, **kwargs: Any) -> Any:
        data = {name: loader(classes=False) for name in ("train_dataloaders", "val_dataloaders")}
        return Regression(**data, **kwargs, **TRAINING)

    def make_model(self) -> Any:
        return network(1)

    def mutable_cases(self) -> Cases:
        return [(self.make(weight_decay=RATE), {"rate": 0.2})]


class TestLightning(NasEvaluatorConformance):
    def make(self, rate: float = 0.1) -> Any:
        module = ClassificationModule(learning_rate=rate, num_classes=2)
        return Lightning(module, Trainer(**TRAINING), loader(), loader(8))

    def make_model(self) -> Any:
        return network()

    def mutable_cases(self) -> Cases:
        return [(self.make(RATE), {"rate": 0.2})]
