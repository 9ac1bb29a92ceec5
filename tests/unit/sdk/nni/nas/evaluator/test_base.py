from typing import Any

import pytest

import nni
from nni.mutable import SampleValidationError
from nni.nas.evaluator import Evaluator, FrozenEvaluator, MutableEvaluator


class Reporting(Evaluator):
    def evaluate(self, model: Any) -> None:
        nni.report_final_result(nni.get_next_parameter()["width"] + model)


class Untraced(MutableEvaluator):
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def evaluate(self, model: Any) -> Any:
        return self.rate * model


@nni.trace
class Training(Untraced):
    pass


@nni.trace
class Optimizer:
    def __init__(self, decay: float) -> None:
        self.decay = decay


def test_the_trial_api_returns_the_model_in_a_mock_runtime(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evaluator = Reporting()

    with evaluator.mock_runtime({"width": 3}):
        evaluator.evaluate(4)
        nni.report_intermediate_result(1)

    assert "Final result: 7\n" in capsys.readouterr().out
    assert nni.get_next_parameter() == {}


def test_a_trial_has_no_mock_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_PLATFORM", "local")

    with pytest.raises(RuntimeError, match="must not be used in a trial"):
        Reporting().mock_runtime(3).__enter__()


def test_mutable_arguments_are_dimensions_of_the_search() -> None:
    evaluator: Any = Training(nni.choice("rate", [0.1, 0.2]))
    decay: Any = nni.uniform("decay", 0, 1)
    optimizer: Any = Optimizer(decay)
    nested: Any = Training(optimizer)

    assert (evaluator.rate, evaluator.is_mutable()) == (0.1, True)
    assert list(evaluator.simplify()) == ["rate"]
    assert list(nested.simplify()) == ["decay"]
    assert nested.freeze({"decay": 0.25}).get().rate.decay == 0.25
    assert not Training(0.1).is_mutable()


def test_a_sample_that_does_not_fit_is_refused_with_the_argument() -> None:
    optimizer: Any = Optimizer(nni.choice("decay", [0.1]))
    evaluator = Training(optimizer)

    assert evaluator.contains({"decay": 0.1})
    with pytest.raises(SampleValidationError, match=r"got 7 \(in rate\.decay -> decay\)"):
        evaluator.freeze({"decay": 7})


def test_a_frozen_evaluator_is_built_once_when_it_is_used() -> None:
    frozen = Training(nni.choice("rate", [0.1, 0.2])).freeze({"rate": 0.2})

    assert isinstance(frozen, FrozenEvaluator)
    assert frozen.get() is frozen.get()
    assert frozen.evaluate(10) == 2.0
    assert repr(frozen) == "FrozenEvaluator(Training, {'rate': 0.2})"


def test_a_frozen_evaluator_travels_as_the_evaluator_itself() -> None:
    frozen = Training(nni.choice("rate", [0.1, 0.2])).freeze({"rate": 0.2})

    loaded = nni.load(nni.dump(frozen))

    assert isinstance(loaded, Training)
    assert (loaded.rate, loaded.is_mutable()) == (0.2, False)
    assert frozen.trace_copy().trace_kwargs == {"rate": 0.2}


def test_a_mutable_evaluator_travels_with_its_dimensions() -> None:
    evaluator = Training(nni.choice("rate", [0.1, 0.2]))

    assert list(nni.load(nni.dump(evaluator)).simplify()) == ["rate"]


def test_an_evaluator_that_is_not_traced_has_no_dimensions() -> None:
    evaluator = Untraced(0.1)

    assert evaluator.simplify() == {}
    with pytest.raises(TypeError, match=r"Untraced must be decorated by nni.trace"):
        evaluator.freeze({})


def test_an_evaluator_among_arguments_stays_itself() -> None:
    inner: Any = Training(nni.choice("rate", [0.1, 0.2]))
    outer: Any = Training(inner)

    assert outer.rate is inner
    assert list(outer.simplify()) == ["rate"]
