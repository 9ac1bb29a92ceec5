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
