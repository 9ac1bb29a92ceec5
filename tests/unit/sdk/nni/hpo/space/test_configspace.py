"""Conversion of search spaces to ConfigSpace and back."""

import math
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


@pytest.mark.parametrize(
    ("operator", "forbidden"), [("<", ">="), ("<=", ">"), (">", "<="), (">=", "<")]
)
def test_comparison_becomes_a_clause_that_forbids_its_complement(
    operator: str, forbidden: str
) -> None:
    space = {
        "a": {"_type": "randint", "_value": [0, 9]},
        "b": {"_type": "randint", "_value": [0, 9]},
    }

    back = [
        from_configspace(to_configspace({**space, "_constraints": [f"a {operator} {right}"]}))
        for right in ("4", "b")
    ]

    assert [one["_constraints"] for one in back] == [
        [f"not (`a` {forbidden} 4.0)"],
        [f"not (`a` {forbidden} `b`)"],
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 1000, 1], ConfigSpace.OrdinalHyperparameter),
        ([1, 1001, 1], ConfigSpace.UniformFloatHyperparameter),
        ([3, 3, 1], ConfigSpace.Constant),
    ],
)
def test_up_to_1000_steps_are_an_ordinal(values: list[int], kind: type) -> None:
    made = to_configspace({"x": {"_type": "quniform", "_value": values}})

    assert type(made["x"]) is kind


def test_options_that_are_no_texts_become_their_json() -> None:
    options = [1, True, None, [1, 2], "text"]
    space = {"x": {"_type": "choice", "_value": options}}

    texts = list(to_configspace(space)["x"].choices)

    assert texts == ["1", "true", "null", "[1,2]", "text"]
    assert [parameters_of(space, {"x": text})["x"] for text in texts] == options
    with pytest.raises(ValueError, match="parameter 'x': no option is 'other'"):
        parameters_of(space, {"x": "other"})


def test_space_has_the_given_name_and_seed() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}

    first, again, other = (to_configspace(space, name="mine", seed=seed) for seed in (1, 1, 2))

    assert first.name == "mine"
    draws = [dict(one.sample_configuration()) for one in (first, again, other)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("limit", "default"), [("x < 3", -8.0), ("x > 3", None)])
def test_default_of_a_logarithmic_normal_is_a_logarithm(limit: str, default: float | None) -> None:
    space = {"x": {"_type": "qlognormal", "_value": [0, 1, 5]}, "_constraints": [limit]}

    made = to_configspace(space)

    # A rounded value of 0 has no logarithm: it is at the lower end.
    found = made["x"].default_value
    assert found == (default if default is not None else pytest.approx(math.log(5)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "constraint",
    ["x < 3", "x >= 3", "q <= 10", "x < y", "x < `z`", {"_forbid": {"q": 5}}],
)
def test_constraint_on_a_logarithmic_normal_survives_there_and_back(constraint: Any) -> None:
    free = {
        "x": {"_type": "lognormal", "_value": [0, 1]},
        "y": {"_type": "lognormal", "_value": [1, 1]},
        "z": {"_type": "lognormal", "_value": [0.5, 0.1]},
        "q": {"_type": "qlognormal", "_value": [2, 1, 5]},
    }
    space = {**free, "_constraints": [constraint]}
    made = to_configspace(space, seed=0)
    original, back, parsed = parse_space(space), parse_space(from_configspace(made)), Random(0)

    draws = [parse_space(free).draw(parsed) for _ in range(200)]
    samples = made.sample_configuration(50)

    assert [original.allows(draw) for draw in draws] == [back.allows(draw) for draw in draws]
    if "q" not in str(constraint):  # ConfigSpace compares its values before they are rounded
        assert all(contains(original, parameters_of(space, dict(one))) for one in samples)


def test_logarithm_can_be_compared_with_logarithms_and_positive_numbers_only() -> None:
    space = {
        "x": {"_type": "lognormal", "_value": [0, 1]},
        "y": {"_type": "uniform", "_value": [0, 9]},
    }

    for constraint in ("x < y", "y < x", "x > 0"):
        with pytest.raises(ValueError, match="has no form in ConfigSpace, where"):
            to_configspace({**space, "_constraints": [constraint]})


def test_short_name_on_the_right_of_a_comparison_is_that_of_each_branch() -> None:
    branch = {"rate": {"_type": "uniform", "_value": [0, 1]}}
    space = {
        "y": {"_type": "uniform", "_value": [0, 1]},
        "model": {"_type": "choice", "_value": [{"_name": name, **branch} for name in "ab"]},
        "_constraints": ["y <= model/rate"],
    }

    made = to_configspace(space, seed=0)

    assert from_configspace(made).keys() == space.keys()
    assert set(from_configspace(made)["_constraints"]) == {
        "not (`y` > `model/a/rate`)",
        "not (`y` > `model/b/rate`)",
    }
    samples = [parameters_of(space, dict(one)) for one in made.sample_configuration(50)]
    assert all(contains(parse_space(space), one) for one in samples)
    assert len({one["model"]["_name"] for one in samples}) == 2
