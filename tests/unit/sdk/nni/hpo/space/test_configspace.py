"""Conversion of search spaces to ConfigSpace and back."""

from random import Random
from typing import Any

import ConfigSpace
import pytest

from nni.hpo.space.configspace import (
    Relation,
    from_configspace,
    parameters_of,
    relation_of,
    to_configspace,
)
from nni.hpo.space.parser import contains, parse_space
from tests.support.search_spaces import EACH_TYPE, SHARED_NAMES

SPACE: dict[str, Any] = {
    **EACH_TYPE,
    "only": {"_type": "randint", "_value": [3, 4]},
    "point": {"_type": "uniform", "_value": [2, 2]},
    "model": SHARED_NAMES,
    "_constraints": [
        {"_forbid": {"randint": 0, "model": "deep"}},
        {"_forbid": {"model/act": "relu", "choice": "two"}},
        "uniform <= 0.5",
        "`loguniform` > normal",
    ],
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_draws_of_the_converted_space_are_points_of_the_original() -> None:
    made = to_configspace(SPACE, seed=1)
    space = parse_space(SPACE)

    points = [parameters_of(SPACE, dict(c)) for c in made.sample_configuration(200)]

    assert all(contains(space, point) for point in points)
    assert {point["model"]["_name"] for point in points} == {"none", "linear", "deep"}


def test_there_and_back_is_the_same_space() -> None:
    back = from_configspace(to_configspace(SPACE))

    assert {key: back[key] for key in SPACE if key != "_constraints"} == {
        key: SPACE[key] for key in SPACE if key != "_constraints"
    }
    original, again = parse_space(SPACE), parse_space(back)
    free = parse_space({key: SPACE[key] for key in SPACE if key != "_constraints"})
    rng = Random(0)
    draws = [free.draw(rng) for _ in range(300)]
    assert [original.allows(draw) for draw in draws] == [again.allows(draw) for draw in draws]


def test_what_has_no_form_is_refused() -> None:
    space = ConfigSpace.ConfigurationSpace()
    space.add(ConfigSpace.BetaFloatHyperparameter("b", 2, 3, 0, 1))
    with pytest.raises(ValueError, match="hyperparameter 'b'"):
        from_configspace(space)

    space = ConfigSpace.ConfigurationSpace()
    a = ConfigSpace.UniformFloatHyperparameter("a", 0, 1)
    b = ConfigSpace.UniformFloatHyperparameter("b", 0, 1)
    space.add(a, b)
    space.add(ConfigSpace.GreaterThanCondition(b, a, 0.5))
    with pytest.raises(ValueError, match="condition"):
        from_configspace(space)

    product = {"x": SPACE["uniform"], "_constraints": ["x * x < 0.5"]}
    with pytest.raises(ValueError, match="has no form in ConfigSpace"):
        to_configspace(product)


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("a < b", Relation("a", "<", "b")),
        ("model/lr<=0.1", Relation("model/lr", "<=", 0.1)),
        (" `batch size` >= -1e-3 ", Relation("batch size", ">=", -1e-3)),
        ("a > `b c`", Relation("a", ">", "b c")),
        ("a == 1", None),
        ("a + 1 < b", None),
        ("a < b < c", None),
        ("not a < b", None),
        ("1 < a", None),
    ],
)
def test_comparisons_are_recognised(text: str, relation: Relation | None) -> None:
    assert relation_of(text) == relation


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_normal_distribution_is_truncated_at_eight_standard_deviations() -> None:
    made = to_configspace({"x": {"_type": "normal", "_value": [1, 0.5]}})

    assert (made["x"].lower, made["x"].upper) == (-3.0, 5.0)


def test_steps_are_an_ordinal_unless_they_are_logarithmic() -> None:
    space = to_configspace(
        {
            "linear": {"_type": "quniform", "_value": [0, 1, 0.25]},
            "log": {"_type": "qloguniform", "_value": [1, 4, 1]},
        }
    )

    assert list(space["linear"].sequence) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert isinstance(space["log"], ConfigSpace.UniformFloatHyperparameter)
    assert space["log"].log


def test_default_of_a_choice_keeps_the_constraints() -> None:
    space = {
        "c": {"_type": "choice", "_value": ["a", "b"]},
        "d": {"_type": "choice", "_value": ["a", "b"]},
        "_constraints": [{"_forbid": {"c": "a", "d": "a"}}],
    }

    default = to_configspace(space).get_default_configuration()

    assert contains(parse_space(space), parameters_of(space, dict(default)))
