import subprocess
import sys
from typing import Any

import pytest

import nni
from nni.common.serializer import PayloadTooLarge
from nni.common.serializer.submission import dump_submission
from nni.nas.evaluator import FunctionalEvaluator


def train(model: float, epochs: int = 1, table: Any = None) -> float:
    del table
    return model * epochs


def test_the_function_gets_the_model_and_the_arguments() -> None:
    assert FunctionalEvaluator(train, epochs=3).evaluate(2.0) == 6.0


def test_the_class_is_traced_already() -> None:
    evaluator: Any = FunctionalEvaluator(train, epochs=3)

    assert nni.trace(FunctionalEvaluator) is FunctionalEvaluator
    assert evaluator.trace_kwargs == {"function": train, "epochs": 3}
    assert repr(evaluator) == "FunctionalEvaluator(train, {'epochs': 3})"


def test_arguments_may_be_mutable() -> None:
    evaluator = FunctionalEvaluator(train, epochs=nni.choice("epochs", [1, 5]))

    assert evaluator.evaluate(2.0) == 2.0
    assert evaluator.freeze({"epochs": 5}).evaluate(2.0) == 10.0


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="function must be a function of a model, got 3"):
        FunctionalEvaluator(3)  # type: ignore[arg-type]


def test_a_function_of_the_main_script_travels_by_value() -> None:
    script = """
import nni
from nni.nas.evaluator import FunctionalEvaluator
def double(model):
    return 2 * model
print(nni.dump(FunctionalEvaluator(double)))
"""
    written = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30
    ).stdout

    assert nni.load(written).evaluate(21) == 42


@pytest.mark.claim("nas", 11)
def test_a_submitted_evaluator_holds_at_most_64_kb(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = FunctionalEvaluator(train, table=bytearray(70_000))

    with pytest.raises(PayloadTooLarge, match=r"table .*64 KB"):
        dump_submission(evaluator)
    monkeypatch.setenv("PICKLE_SIZE_LIMIT", "100000")
    assert len(nni.load(dump_submission(evaluator)).arguments["table"]) == 70_000
