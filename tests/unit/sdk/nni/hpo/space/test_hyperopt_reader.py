import math
from typing import Any

import pytest

from nni.experiment.config import ExperimentConfig
from nni.hpo import Study, Uniform, optimize
from nni.hpo.space.typed_space import as_json

hyperopt = pytest.importorskip("hyperopt")
hp = hyperopt.hp
scope = hyperopt.pyll.scope


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "values"),
    [
        ("uniform", (0, 1), "uniform", [0, 1]),
        ("quniform", (0, 10, 2), "quniform", [0, 10, 2]),
        ("loguniform", (math.log(0.25), 0), "loguniform", [0.25, 1]),
        ("qloguniform", (0, math.log(8), 1), "qloguniform", [1, pytest.approx(8), 1]),
        ("normal", (2, 3), "normal", [2, 3]),
        ("qlognormal", (0, 1, 2), "qlognormal", [0, 1, 2]),
        ("randint", (5,), "randint", [0, 5]),
        ("randint", (2, 5), "randint", [2, 5]),
        ("uniformint", (1, 8), "randint", [1, 9]),
        ("choice", (["a", None, [1, 2]],), "choice", ["a", None, [1, 2]]),
    ],
)
def test_expression_has_its_entry(
    name: str, arguments: tuple[Any, ...], kind: str, values: list[Any]
) -> None:
    expression = getattr(hp, name)("x", *arguments)

    assert as_json({"x": expression}) == {"x": {"_type": kind, "_value": values}}


@pytest.mark.parametrize(
    ("expression", "kind", "values"),
    [
        (hp.uniform("x", low=2, high=5), "uniform", [2, 5]),
        (hp.quniform("x", 2, q=1, high=5), "quniform", [2, 5, 1]),
        (hp.loguniform("x", low=0, high=math.log(8)), "loguniform", [1, pytest.approx(8)]),
        (hp.qnormal("x", q=1, sigma=3, mu=2), "qnormal", [2, 3, 1]),
        (hp.randint("x", high=5, low=2), "randint", [2, 5]),
        (hp.randint("x", upper=5), "randint", [0, 5]),
        (hp.uniformint("x", high=8, low=1), "randint", [1, 9]),
    ],
)
def test_arguments_by_name_have_their_places(expression: Any, kind: str, values: list[Any]) -> None:
    assert as_json({"x": expression}) == {"x": {"_type": kind, "_value": values}}


def test_unknown_argument_is_named() -> None:
    with pytest.raises(ValueError, match="'x': hyperopt's uniform with an argument 'lo' has no"):
        as_json({"x": hp.uniform("x", lo=0, high=1)})


def test_options_with_expressions_are_branches_and_constants_are_choices_of_one() -> None:
    space = {"m": hp.choice("m", [{"kind": "svm", "c": hp.uniform("c", 0, 1)}, "none"]), "k": 3}
    limits = ["k <= 3"]

    assert as_json({**space, "_constraints": limits})["_constraints"] is limits
    assert as_json(space) == {
        "m": {
            "_type": "choice",
            "_value": [
                {
                    "_name": "0",
                    "c": {"_type": "uniform", "_value": [0, 1]},
                    "kind": {"_type": "choice", "_value": ["svm"]},
                },
                "none",
            ],
        },
        "k": {"_type": "choice", "_value": [3]},
    }


def test_weights_and_arithmetic_have_no_equivalent() -> None:
    with pytest.raises(ValueError, match="'x': hyperopt's pchoice has no equivalent"):
        as_json({"x": hp.pchoice("x", [(0.1, 1), (0.9, 2)])})
    with pytest.raises(ValueError, match=r"'x': hyperopt's .* has no equivalent"):
        as_json({"x": hp.uniform("x", 0, 1) * 2})


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (scope.pow(2, scope.uniform(0, 3)), "pow"),
        (scope.hyperopt_param("x", scope.categorical([0.2, 0.8])), "hyperopt_param"),
    ],
)
def test_expression_of_another_kind_has_no_equivalent(expression: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"'x': hyperopt's {name} has no equivalent"):
        as_json({"x": expression})


def test_every_entrance_takes_the_space() -> None:
    space = {"x": hp.uniform("x", 0, 1), "y": Uniform(2, 3)}

    study = Study(space, tuner="Random", seed=0)
    found = optimize(lambda p: p["x"] + p["y"], space, tuner="Random", trials=2, seed=0)
    config = ExperimentConfig("local", search_space=space)

    assert study.search_space == config.search_space
    assert found.trials[0].parameters == study.ask().parameters


def test_a_configspace_is_taken_as_a_whole() -> None:
    module = pytest.importorskip("ConfigSpace")
    space = module.ConfigurationSpace({"rate": (0.1, 1.0), "kind": ["a", "b"]})

    study = Study(space, tuner="TPE", seed=0)
    config = ExperimentConfig("local", search_space=space)

    assert study.search_space["rate"] == {"_type": "uniform", "_value": [0.1, 1.0]}
    assert config.search_space == study.search_space
    assert optimize(lambda p: p["rate"], space, trials=2, seed=0).best_value >= 0.1
