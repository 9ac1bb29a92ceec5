from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import nni
from nni.nas.evaluator import Evaluator, MutableEvaluator
from nni.testing.nas_evaluators import NasEvaluatorConformance


class Flawed(MutableEvaluator):
    """Evaluator whose defects are chosen."""

    def __init__(self, defect: str = "", rate: float = 1.0, log: list[int] | None = None) -> None:
        self.defect = defect
        self.rate = rate
        self.evaluations = 0

    def evaluate(self, model: float) -> None:
        self.evaluations += 1
        if self.defect == "changes its record":
            vars(self)["trace_kwargs"]["log"].append(1)
        nni.report_intermediate_result([1] if self.defect == "reports lists" else 0.5)
        result = model * self.rate
        if self.defect == "keeps state":
            result += self.evaluations
        if self.defect == "reports NaN":
            result = float("nan")
        if self.defect != "reports nothing":
            nni.report_final_result(result)


TRACED = nni.trace(Flawed)


class Suite(NasEvaluatorConformance):
    defect: ClassVar[str] = ""

    def make(self) -> Evaluator:
        made: Any = Flawed if self.defect == "is not traced" else TRACED
        rate = nni.choice("rate", [1.0]) if self.defect == "is mutable" else 1.0
        return made(self.defect, rate, log=[])  # type: ignore[no-any-return]  # the class is chosen

    def make_model(self) -> float:
        return 0.5

    def mutable_cases(self) -> list[tuple[MutableEvaluator, dict[str, Any]]]:
        sample = {"rate": 2.0, "more": 1} if self.defect == "has less dimensions" else {"rate": 2.0}
        return [(TRACED(self.defect, nni.choice("rate", [1.0, 2.0])), sample)]


def suite(defect: str) -> Suite:
    made = Suite()
    vars(made)["defect"] = defect
    return made


DEFECTS: dict[str, Callable[[Any], None]] = {
    "reports nothing": Suite.test_one_result_is_reported,
    "reports NaN": Suite.test_one_result_is_reported,
    "reports lists": Suite.test_intermediate_results_are_metrics,
    "keeps state": Suite.test_one_evaluator_evaluates_models_in_turn,
    "is not traced": Suite.test_the_evaluator_travels,
    "changes its record": Suite.test_the_record_is_not_changed_by_an_evaluation,
    "is mutable": Suite.test_mutable_arguments_are_dimensions_and_a_frozen_one_has_none,
    "has less dimensions": Suite.test_mutable_arguments_are_dimensions_and_a_frozen_one_has_none,
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found(defect: str) -> None:
    with pytest.raises(AssertionError):
        DEFECTS[defect](suite(defect))


class TestSound(Suite):
    """The suite passes for an evaluator without defects."""
