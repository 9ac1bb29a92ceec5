"""Search spaces that are read from ConfigSpace."""

from typing import Any

import ConfigSpace
import pytest

from nni.hpo.space.configspace import (
    from_configspace,
)


def other() -> Any:
    """Return a space that was not made by `to_configspace`."""
    space = ConfigSpace.ConfigurationSpace(seed=0)
    model = ConfigSpace.CategoricalHyperparameter("model", ["svm", "forest", "linear"])
    c = ConfigSpace.UniformFloatHyperparameter("c", 0.01, 100, log=True)
    depth = ConfigSpace.UniformIntegerHyperparameter("depth", 1, 32)
    trees = ConfigSpace.UniformIntegerHyperparameter("trees", 10, 1000, log=True)
    size = ConfigSpace.OrdinalHyperparameter("size", ["s", "m", "l"])
    noise = ConfigSpace.NormalFloatHyperparameter("noise", 0, 1, -5, 5)
    fixed = ConfigSpace.Constant("fixed", 7)
    space.add(model, c, depth, trees, size, noise, fixed)
    space.add(ConfigSpace.InCondition(c, model, ["svm", "linear"]))
    space.add(ConfigSpace.EqualsCondition(depth, model, "forest"))
    space.add(ConfigSpace.EqualsCondition(trees, model, "forest"))
    space.add(
        ConfigSpace.ForbiddenAndConjunction(
            ConfigSpace.ForbiddenInClause(model, ["svm", "linear"]),
            ConfigSpace.ForbiddenEqualsClause(size, "l"),
        ),
        ConfigSpace.ForbiddenAndConjunction(
            ConfigSpace.ForbiddenGreaterThanClause(depth, 10),
            ConfigSpace.ForbiddenEqualsClause(size, "s"),
        ),
        ConfigSpace.ForbiddenGreaterThanRelation(depth, trees),
    )
    return space


def test_conditions_become_branches_and_clauses_become_constraints() -> None:
    space = from_configspace(other())

    assert space["model"]["_value"] == [
        {"_name": "svm", "c": {"_type": "loguniform", "_value": [0.01, 100]}},
        {
            "_name": "forest",
            "depth": {"_type": "randint", "_value": [1, 33]},
            "trees": {"_type": "qloguniform", "_value": [10, 1000, 1]},
        },
        {"_name": "linear", "c": {"_type": "loguniform", "_value": [0.01, 100]}},
    ]
    assert space["size"] == {"_type": "choice", "_value": ["s", "m", "l"]}
    assert space["noise"] == {"_type": "normal", "_value": [0, 1]}
    assert space["fixed"] == {"_type": "choice", "_value": [7]}
    assert space["_constraints"] == [
        {"_forbid": {"model": "svm", "size": "l"}},
        {"_forbid": {"model": "linear", "size": "l"}},
        "not (`model/depth` > 10 and `size` in ['s'])",
        "not (`model/depth` > `model/trees`)",
    ]


@pytest.mark.parametrize(
    ("name", "reason"), [("_name", "is reserved"), ("_constraints", "must be a list")]
)
def test_name_that_a_search_space_cannot_have_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_configspace(ConfigSpace.ConfigurationSpace({name: (0.1, 1.0)}))


def of(*hyperparameters: Any) -> Any:
    """Return a ConfigSpace of some hyperparameters."""
    space = ConfigSpace.ConfigurationSpace(seed=0)
    space.add(*hyperparameters)
    return space


LEVEL = ConfigSpace.OrdinalHyperparameter("level", ["low", "high"])
KIND = ConfigSpace.CategoricalHyperparameter("kind", ["a", "b"])
OTHER = ConfigSpace.CategoricalHyperparameter("other", ["a", "b"])
RATE = ConfigSpace.UniformFloatHyperparameter("rate", 0, 1)
COUNT = ConfigSpace.UniformIntegerHyperparameter("count", 2, 8)


def test_condition_on_an_ordered_hyperparameter_is_refused() -> None:
    space = of(LEVEL, RATE)
    space.add(ConfigSpace.EqualsCondition(RATE, LEVEL, "low"))

    with pytest.raises(ValueError, match="may depend on one categorical hyperparameter"):
        from_configspace(space)


def test_condition_on_two_hyperparameters_is_refused() -> None:
    space = of(KIND, OTHER, RATE)
    both = (ConfigSpace.EqualsCondition(RATE, parent, "a") for parent in (KIND, OTHER))
    space.add(ConfigSpace.AndConjunction(*both))

    with pytest.raises(ValueError, match="must ask for values of one categorical"):
        from_configspace(space)


@pytest.mark.parametrize(
    "hyperparameter",
    [
        ConfigSpace.NormalIntegerHyperparameter("n", 5, 1, 1, 9),
        ConfigSpace.NormalFloatHyperparameter("n", 5, 1, 1, 9, log=True),
    ],
)
def test_distribution_without_an_equivalent_is_refused(hyperparameter: Any) -> None:
    with pytest.raises(ValueError, match=r"hyperparameter 'n': Normal.* has no form"):
        from_configspace(of(hyperparameter))


def test_branches_nest_and_constraints_name_their_parameters_by_path() -> None:
    space = of(KIND, OTHER, RATE)
    space.add(ConfigSpace.EqualsCondition(OTHER, KIND, "a"))
    space.add(ConfigSpace.EqualsCondition(RATE, OTHER, "b"))
    space.add(ConfigSpace.ForbiddenGreaterThanClause(RATE, 0.5))

    rate = {"_type": "uniform", "_value": [0.0, 1.0]}
    other_choice = {"_type": "choice", "_value": ["a", {"_name": "b", "rate": rate}]}
    assert from_configspace(space) == {
        "kind": {"_type": "choice", "_value": [{"_name": "a", "other": other_choice}, "b"]},
        "_constraints": ["not (`kind/other/rate` > 0.5)"],
    }


@pytest.mark.parametrize(
    ("clause", "constraint"),
    [
        (ConfigSpace.ForbiddenEqualsClause(COUNT, 8), {"_forbid": {"count": 8}}),
        (ConfigSpace.ForbiddenLessThanClause(COUNT, 4), "not (`count` < 4)"),
        (ConfigSpace.ForbiddenLessThanEqualsClause(COUNT, 4), "not (`count` <= 4)"),
        (ConfigSpace.ForbiddenGreaterThanEqualsClause(RATE, 0.75), "not (`rate` >= 0.75)"),
    ],
)
def test_clause_becomes_a_constraint(clause: Any, constraint: object) -> None:
    space = of(COUNT, RATE)
    space.add(clause)

    assert from_configspace(space)["_constraints"] == [constraint]


def test_truth_values_of_clauses_are_those_of_expressions() -> None:
    fast = ConfigSpace.CategoricalHyperparameter("fast", [True, False])
    space = of(fast, COUNT)
    space.add(
        ConfigSpace.ForbiddenAndConjunction(
            ConfigSpace.ForbiddenEqualsClause(fast, True),
            ConfigSpace.ForbiddenLessThanClause(COUNT, 4),
        )
    )

    assert from_configspace(space)["_constraints"] == ["not (`fast` in [true] and `count` < 4)"]
