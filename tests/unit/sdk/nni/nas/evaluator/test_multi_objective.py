from typing import Any

import pytest

import nni
from nni.nas.evaluator import FunctionalEvaluator, MultiObjectiveEvaluator
from nni.nas.evaluator.trial_reports import reports_to


def train(model: str, scale: float = 1.0, *, detailed: bool = False) -> None:
    nni.report_intermediate_result(0.25)
    nni.report_final_result({"default": scale, "loss": 2.0} if detailed else scale)


def reports(evaluator: Any) -> list[object]:
    found: list[object] = []
    with reports_to(None, found.append, found.append):
        evaluator.evaluate("model")
    return found


def test_measures_join_the_result_and_not_intermediate_ones() -> None:
    evaluator = MultiObjectiveEvaluator(FunctionalEvaluator(train), {"size": len})

    assert reports(evaluator) == [0.25, {"default": 1.0, "size": 5.0}]


def test_a_result_with_several_metrics_keeps_them() -> None:
    evaluator = MultiObjectiveEvaluator(FunctionalEvaluator(train, detailed=True), {"size": len})

    assert reports(evaluator)[-1] == {"default": 1.0, "loss": 2.0, "size": 5.0}


def test_a_model_that_cannot_be_measured_is_not_trained() -> None:
    def measure(model: object) -> float:
        raise ValueError("no size")

    evaluator = MultiObjectiveEvaluator(FunctionalEvaluator(train), {"size": measure})

    found: list[object] = []
    with pytest.raises(ValueError, match="no size"), reports_to(None, found.append, found.append):
        evaluator.evaluate("model")
    assert found == []


def test_the_name_of_the_search_metric_is_taken() -> None:
    with pytest.raises(ValueError, match="must not have the name 'default'"):
        MultiObjectiveEvaluator(FunctionalEvaluator(train), {"default": len})


def test_dimensions_of_the_inner_evaluator_are_searched() -> None:
    inner = FunctionalEvaluator(train, scale=nni.choice("scale", [1.0, 3.0]))
    evaluator: Any = MultiObjectiveEvaluator(inner, {"size": len})

    frozen = evaluator.freeze({"scale": 3.0})

    assert list(evaluator.simplify()) == ["scale"]
    assert reports(nni.load(nni.dump(frozen)))[-1] == {"default": 3.0, "size": 5.0}
