import json
import sys
from pathlib import Path

import pytest

import nni
from nni.mutable import Categorical
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.evaluator.trial_reports import reports_to
from nni.nas.execution import trial
from nni.nas.execution.candidate import parameters_of
from nni.nas.space import SimplifiedModelSpace


class Network:
    """Network of one number; a weak reference to it can be made."""

    accuracy = 0.5


def score(model: Network) -> None:
    nni.report_intermediate_result(model.accuracy / 2)
    nni.report_final_result(model.accuracy)


@pytest.mark.parametrize("arguments", [["trial"], ["trial", "--reuse"]])
def test_trial_evaluates_the_model_of_its_parameters(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["-m", *arguments])
    leaf = Categorical([1, 2], label="a")
    space = SimplifiedModelSpace(Network, [], {}, {"a": leaf}, FunctionalEvaluator(score))
    parameters = parameters_of(space.freeze({"a": 1}))
    intermediates: list[object] = []
    finals: list[object] = []

    with reports_to(parameters, intermediates.append, finals.append):
        trial.main()

    assert (intermediates, finals) == ([0.25], [0.5])


def test_trial_leaves_the_files_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["-m", "trial", "--save"])
    monkeypatch.setenv("NNI_OUTPUT_DIR", str(tmp_path))
    leaf = Categorical([1, 2], label="a")
    space = SimplifiedModelSpace(Network, [], {}, {"a": leaf}, FunctionalEvaluator(score))
    parameters = parameters_of(space.freeze({"a": 1}))

    with reports_to(parameters, lambda _: None, lambda _: None):
        trial.main()

    assert json.loads((tmp_path / "model" / "sample.json").read_text()) == {"a": 1}
