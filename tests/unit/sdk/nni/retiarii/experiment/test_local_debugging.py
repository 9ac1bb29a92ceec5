"""One model of a search, evaluated in this process."""

from typing import Any

import pytest

import nni
from nni.mutable import Categorical
from nni.retiarii.experiment.pytorch import debug_mutated_model
from nni.testing.strategies import TableSpace

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Evaluating:
    """Evaluator that records its models."""

    def __init__(self) -> None:
        self.models: list[Any] = []

    def evaluate(self, model: Any) -> None:
        self.models.append(model)
        nni.report_final_result(model["a"])


def test_one_model_is_evaluated() -> None:
    evaluator = Evaluating()

    debug_mutated_model(TableSpace(Categorical([1, 2], label="a")), evaluator)

    assert len(evaluator.models) == 1


def test_mutators_are_refused() -> None:
    with pytest.raises(ValueError, match="applied_mutators must be empty"):
        debug_mutated_model(None, None, [1])
