"""One model of a search, evaluated in this process."""

from typing import Any

import pytest
import torch

import nni
from nni.mutable import Categorical
from nni.retiarii.experiment.pytorch import debug_mutated_model
from nni.testing.strategies import TableSpace
from tests.support.mutated_networks import BlockMutator, MutatedNet

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Evaluating:
    """Evaluator that records its models."""

    def __init__(self) -> None:
        self.models: list[Any] = []

    def evaluate(self, model: Any) -> None:
        self.models.append(model)
        nni.report_final_result(model["a"])


class NetworkEvaluating:
    """Evaluator that records networks."""

    def __init__(self, networks: list[Any]) -> None:
        self.networks = networks

    def evaluate(self, model: Any) -> None:
        self.networks.append(model)
        nni.report_final_result(0.0)


def test_one_model_is_evaluated() -> None:
    evaluator = Evaluating()

    debug_mutated_model(TableSpace(Categorical([1, 2], label="a")), evaluator)

    assert len(evaluator.models) == 1


def test_network_of_mutators_is_evaluated() -> None:
    networks: list[Any] = []

    debug_mutated_model(MutatedNet(), NetworkEvaluating(networks), [BlockMutator("block")])

    assert networks[0](torch.zeros(2, 4)).shape[1] in {3, 5}
