import json
from pathlib import Path
from typing import Any

import pytest

import nni
from nni.mutable import Categorical
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution.candidate import model_from, parameters_of
from nni.nas.execution.payload_files import PayloadFiles
from nni.nas.space import ModelStatus, SimplifiedModelSpace


class Network:
    """Network of one number; a weak reference to it can be made."""

    def __init__(self, width: int) -> None:
        self.width = width


class Table:
    """Argument of an evaluator that was not traced."""

    def __init__(self, values: bytes) -> None:
        self.values = values


def network(width: int) -> Network:
    return Network(width)


def score(model: object, scale: int) -> None:
    nni.report_final_result({"default": model, "scale": scale})


def frozen() -> SimplifiedModelSpace:
    leaf = Categorical([(1, 2), (3, 4)], label="a")
    evaluator = FunctionalEvaluator(score, scale=2)
    return SimplifiedModelSpace(network, [7], {}, {"a": leaf}, evaluator).freeze({"a": (3, 4)})


def test_model_travels_as_calls_and_a_sample() -> None:
    parameters = json.loads(json.dumps(parameters_of(frozen())))

    model = model_from(parameters)

    assert parameters["sample"] == {"a": [3, 4]}
    assert (model.sample, model.status) == ({"a": (3, 4)}, ModelStatus.Frozen)
    assert model.executable_model().width == 7
    assert isinstance(model.evaluator, FunctionalEvaluator)
    assert model.evaluator.arguments == {"scale": 2}


def test_choice_that_is_no_plain_value_is_shown_as_text() -> None:
    leaf = Categorical([int, float], label="a")
    space = SimplifiedModelSpace(network, [7], {}, {"a": leaf}, FunctionalEvaluator(score))

    assert parameters_of(space.freeze({"a": int}))["sample"] == {"a": "<class 'int'>"}


def test_other_parameters_are_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="start the search with NasExperiment"):
        model_from({"x": 1})


def test_model_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="install the same version"):
        model_from({**parameters_of(frozen()), "nni_version": "3.0"})


def test_object_that_is_no_model_is_refused() -> None:
    with pytest.raises(TypeError, match="must hold a model space"):
        model_from({**parameters_of(frozen()), "model": 1})


def test_one_part_may_take_as_much_as_a_search_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    def submitted(length: int) -> dict[str, Any]:
        evaluator = FunctionalEvaluator(len, table=bytearray(length))
        space = SimplifiedModelSpace(dict, (), {}, {}, evaluator)
        return parameters_of(space.freeze({}))

    assert submitted(60_000)
    with pytest.raises(ValueError, match=r"evaluator\.table .*64 KB"):
        submitted(70_000)
    monkeypatch.setenv("PICKLE_SIZE_LIMIT", "100000")
    assert submitted(70_000)


def test_large_parts_travel_as_files_if_there_is_a_store(tmp_path: Path) -> None:
    leaf = Categorical([1, 2], label="a")
    table = Table(bytes(100_000))
    space = SimplifiedModelSpace(
        network, [7], {}, {"a": leaf}, FunctionalEvaluator(score, scale=table)
    )
    model = space.freeze({"a": 2})

    with pytest.raises(ValueError, match=r"config\.spill = True"):
        parameters_of(model)
    parameters = parameters_of(model, PayloadFiles(tmp_path, 65536))
    loaded = model_from(json.loads(json.dumps(parameters)))

    assert len(json.dumps(parameters)) < 2_000
    assert isinstance(loaded.evaluator, FunctionalEvaluator)
    assert loaded.evaluator.arguments["scale"].values == table.values
