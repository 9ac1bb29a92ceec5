"""Constraints of search spaces."""

from random import Random
from typing import Any

import pytest

from nni.hpo.space.constraints import InfeasibleSpaceError
from nni.hpo.space.domains import active_places
from nni.hpo.space.parser import contains, parse_space, place

SPACE: dict[str, Any] = {
    "width": {"_type": "randint", "_value": [1, 1025]},
    "layers": {"_type": "randint", "_value": [1, 17]},
    "optimizer": {"_type": "choice", "_value": ["sgd", "adam"]},
    "model": {
        "_type": "choice",
        "_value": [
            {"_name": "mlp", "lr": {"_type": "uniform", "_value": [0, 1]}},
            {
                "_name": "svm",
                "lr": {"_type": "uniform", "_value": [0, 1]},
                "c": {"_type": "uniform", "_value": [0, 10]},
            },
            "none",
        ],
    },
}


def space(*constraints: object) -> dict[str, Any]:
    return {**SPACE, "_constraints": list(constraints)}


def point(**changes: object) -> dict[str, Any]:
    return {
        "width": 10,
        "layers": 2,
        "optimizer": "sgd",
        "model": {"_name": "mlp", "lr": 0.5},
        **changes,
    }


def allows(constraint: object, **changes: object) -> bool:
    return contains(parse_space(space(constraint)), point(**changes))


def test_draws_keep_all_constraints() -> None:
    parsed = parse_space(
        space("width * layers <= 2048", {"_forbid": {"optimizer": "sgd", "model/_name": "mlp"}})
    )
    rng = Random(1)

    draws = [parsed.draw(rng) for _ in range(500)]

    assert all(draw["width"] * draw["layers"] <= 2048 for draw in draws)
    assert not any(d["optimizer"] == "sgd" and d["model"] == "mlp" for d in draws)
    names = {d["model"]["_name"] for d in draws if isinstance(d["model"], dict)}
    assert names == {"mlp", "svm"}


def test_draws_of_a_hardly_allowed_space_are_spread_over_what_is_allowed() -> None:
    # 3 of 16,384 combinations: hopeless for draws alone, found in the 10,000 at the start.
    parsed = parse_space(space("width + layers <= 3"))
    rng = Random(1)

    found = {(draw["width"], draw["layers"]) for draw in (parsed.draw(rng) for _ in range(60))}

    assert found == {(1, 1), (1, 2), (2, 1)}


def test_without_constraints_draws_are_what_they_were() -> None:
    assert parse_space(SPACE).draw(Random(5)) == parse_space(space()).draw(Random(5))


def test_inner_names_are_those_of_the_configuration() -> None:
    assert allows("model/lr <= 0.5")
    assert not allows("model/lr < 0.5")
    assert allows("model/mlp/lr <= 0.5")
    assert allows("model/svm/lr < 0.5")  # the other branch: not active
    assert not allows("model == 'svm'")
    assert not allows("model/_name != 'mlp'")


def test_a_constraint_on_an_inactive_parameter_holds() -> None:
    assert allows("model/c > 5")
    assert allows("not (model/c > 5) and width > 5")
    assert allows("model/c > 5", model="none")
    assert not allows("model/c > 5", model={"_name": "svm", "lr": 0.5, "c": 1.0})
    assert allows({"_forbid": {"width": 10, "model/c": 1.0}})


def test_a_forbidden_combination_needs_all_its_values() -> None:
    forbid = {"_forbid": {"optimizer": "sgd", "model/_name": "mlp"}}

    assert not allows(forbid)
    assert allows(forbid, optimizer="adam")
    assert allows(forbid, model="none")
    assert not allows({"_forbid": {"model": "mlp"}})


def test_what_cannot_be_computed_does_not_hold() -> None:
    assert not allows("width / (layers - 2) > -1")


def test_place_names_the_broken_constraint() -> None:
    with pytest.raises(ValueError, match=r"breaks the constraint width \* layers <= 19"):
        place(parse_space(space("width * layers <= 19")), point())


@pytest.mark.parametrize(
    ("constraints", "reason"),
    [
        ("width < 3", "must be a list"),
        ([3], r"_constraints\[0\] 3: must be a text"),
        ([{"_forbid": {}}], "must be a dict of name to value, not empty"),
        ([{"forbid": {"width": 1}}], "must be a text or"),
        (["width > 1", "widht > 1"], r"_constraints\[1\] 'widht > 1': unknown name"),
        ([{"_forbid": {"widht": 1}}], "unknown name 'widht'"),
        ([{"_forbid": {"optimizer": "sdg"}}], "'optimizer' is never 'sdg'"),
        ([{"_forbid": {"model": "mpl"}}], "'model' is never 'mpl'"),
        ([{"_forbid": {"width": 2000}}], "'width' is never 2000"),
        (["1 < 2"], "must name a hyperparameter"),
        (["width"], "must be true or false"),
        (["optimizer > 3"], "must be a number"),
        (["width > 1"] * 1001, "at most 1000"),
    ],
)
def test_bad_constraints_are_refused(constraints: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_space({**SPACE, "_constraints": constraints})


def test_constraints_that_allow_nothing_name_the_one_that_is_kept_least() -> None:
    with pytest.raises(InfeasibleSpaceError, match=r"none of 10000 draws.*'width > 5000' alone"):
        parse_space(space("layers > 1", "width > 5000"))


def test_constraints_stand_at_the_root_only() -> None:
    branch = {"_name": "a", "_constraints": ["x < 1"]}

    with pytest.raises(ValueError, match="reserved"):
        parse_space({"m": {"_type": "choice", "_value": [branch]}})


def test_names_that_are_no_words_stand_in_backticks() -> None:
    declared = {
        "batch size": {"_type": "randint", "_value": [1, 100]},
        "_constraints": ["`batch size` % 8 == 0"],
    }
    parsed = parse_space(declared)

    assert all(parsed.draw(Random(seed))["batch size"] % 8 == 0 for seed in range(50))


def test_flattened_names_of_typed_spaces_are_names() -> None:
    declared = {
        "opt/lr": {"_type": "uniform", "_value": [0, 1]},
        "opt/decay": {"_type": "uniform", "_value": [0, 1]},
        "_constraints": ["opt/decay <= opt/lr"],
    }

    draw = parse_space(declared).draw(Random(0))

    assert draw["opt/decay"] <= draw["opt/lr"]


def test_active_places_are_those_of_the_drawn_branches() -> None:
    configuration = point()

    paths = [parameter.path for _, parameter in active_places(parse_space(SPACE), configuration)]

    assert paths == ["width", "layers", "optimizer", "model", "model/mlp/lr"]


def test_constraints_beyond_the_limit_of_operations_are_refused() -> None:
    many = ["x + x + x + x + x + x + x + x > 0"] * 1000

    with pytest.raises(ValueError, match="at most 20,000 operands and operators"):
        parse_space({"x": {"_type": "uniform", "_value": [0, 1]}, "_constraints": many})


def test_search_for_a_feasible_sample_ends_with_its_budget() -> None:
    long = " + ".join(["x"] * 480) + " < -1"

    with pytest.raises(InfeasibleSpaceError, match=r"none of 20\d\d draws"):
        parse_space({"x": {"_type": "uniform", "_value": [0, 1]}, "_constraints": [long]})


@pytest.mark.parametrize(
    ("name", "model", "allowed"),
    [
        ("model/lr", {"_name": "mlp", "lr": 0.3}, True),
        ("model/lr", {"_name": "mlp", "lr": 0.5}, False),
        ("model/lr", {"_name": "svm", "lr": 0.5, "c": 1.0}, False),
        ("model/lr", "none", True),
        ("model/mlp/lr", {"_name": "mlp", "lr": 0.3}, True),
        ("model/mlp/lr", {"_name": "mlp", "lr": 0.5}, False),
        ("model/mlp/lr", {"_name": "svm", "lr": 0.5, "c": 1.0}, True),
        ("model/svm/c", {"_name": "svm", "lr": 0.1, "c": 1.0}, False),
        ("model/svm/c", {"_name": "mlp", "lr": 0.1}, True),
        ("model/svm/c", "none", True),
    ],
)
def test_constraint_is_about_the_branch_that_it_names(
    name: str, model: object, allowed: bool
) -> None:
    assert allows(f"{name} < 0.4", model=model) is allowed
