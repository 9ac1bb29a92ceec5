"""Parser of search spaces, and configurations as flat dicts."""

import re
from random import Random

import pytest

from nni.hpo.space.domains import IntegerDomain, UniformDomain
from nni.hpo.space.parser import ALL_TYPES, contains, parse_space, place, walk

NESTED = {
    "model": {
        "_type": "choice",
        "_value": [
            {"_name": "none"},
            {"_name": "deep", "layers": {"_type": "randint", "_value": [1, 5]}},
            "plain",
        ],
    },
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
}


def entry(kind: object, values: object) -> dict[str, object]:
    return {"x": {"_type": kind, "_value": values}}


@pytest.mark.parametrize(
    ("space", "text"),
    [
        ([], "search space must be a dict"),
        (None, "search space must be a dict"),
        ({"x": 1}, "parameter 'x'"),
        ({"x": {"_type": "uniform"}}, "parameter 'x'"),
        ({"x": {"_value": [0, 1]}}, "parameter 'x'"),
        ({1: {"_type": "uniform", "_value": [0, 1]}}, "names must be strings"),
        (entry("mutable_type", [0, 1]), "_type must be one of"),
        (entry(["uniform"], [0, 1]), "_type must be one of"),
        (entry("uniform", 3), "must be a list"),
        (entry("uniform", [0]), r"must be \[low, high\]"),
        (entry("quniform", [0, 1]), r"must be \[low, high, q\]"),
        (entry("uniform", [0, "a"]), "high must be a number"),
        (entry("uniform", [0, True]), "high must be a number"),
        (entry("uniform", [0, float("inf")]), "high must be finite"),
        (entry("uniform", [2, 1]), "low must be <= high"),
        (entry("uniform", [-1e308, 1e308]), "must be a finite number"),
        (entry("randint", [3, 3]), "lower < upper"),
        (entry("randint", [0.5, 3]), "must be integers"),
        (entry("randint", [1, 2, 3]), r"must be \[lower, upper\]"),
        (entry("loguniform", [0, 1]), "must be > 0"),
        (entry("qloguniform", [-1, 1, 1]), "must be > 0"),
        (entry("quniform", [0, 1, 0]), "q must be > 0"),
        (entry("normal", [0, 0]), "sigma must be > 0"),
        (entry("qlognormal", [0, 1, -1]), "q must be > 0"),
        (entry("choice", []), "at least one option"),
        (entry("choice", "abc"), "must be a list"),
        (entry("choice", [{"a": entry("choice", [1])["x"]}]), "must hold '_name'"),
        (entry("choice", [{"_name": 1}]), "must hold '_name'"),
        (entry("choice", [{"_name": "a"}, {"_name": "a"}]), "unique"),
        (entry("choice", [{"_name": "a", "y": 1}]), "parameter 'x/a/y'"),
        (entry("choice", [object()]), "JSON values"),
        ({"_name": {"_type": "uniform", "_value": [0, 1]}}, "reserved"),
    ],
)
def test_malformed_spaces_are_refused_with_the_reason(space: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_space(space)


def test_dict_option_without_a_name_is_a_plain_value() -> None:
    options = [{"width": 4, "layers": [1, 2]}, {"width": 8}, "plain"]
    space = parse_space({"x": {"_type": "choice", "_value": options}}, nested=False)

    placed = [place(space, {"x": option})["x"] for option in options]

    assert placed == [0, 1, 2]
    assert all(space.draw(Random(seed))["x"] in options for seed in range(9))


def test_error_names_parameter_rule_and_value() -> None:
    with pytest.raises(ValueError, match="search space") as caught:
        parse_space(entry("uniform", [2, 1]))

    assert re.search(r"'x'.*low must be <= high.*\[2, 1\]", str(caught.value))


@pytest.mark.claim("hpo", 13)
@pytest.mark.parametrize("kind", ALL_TYPES)
def test_unsupported_type_is_named(kind: str) -> None:
    others = tuple(other for other in ALL_TYPES if other != kind)

    with pytest.raises(ValueError, match=f"'{kind}' is not supported by Demo"):
        parse_space(entry(kind, [1, 2, 1]), algorithm="Demo", types=others)


def test_nested_choice_can_be_refused() -> None:
    with pytest.raises(ValueError, match="nested choice is not supported by Demo"):
        parse_space(NESTED, algorithm="Demo", nested=False)


def test_reserved_names_of_an_algorithm_are_refused() -> None:
    with pytest.raises(ValueError, match="'TRIAL_BUDGET' is reserved in BOHB"):
        parse_space(
            {"TRIAL_BUDGET": {"_type": "randint", "_value": [0, 2]}},
            algorithm="BOHB",
            reserved=frozenset({"TRIAL_BUDGET"}),
        )


def test_empty_space_is_legal() -> None:
    assert parse_space({}).parameters == ()


@pytest.mark.parametrize(("text", "number"), [("1e-5", 1e-5), ("1E-5", 1e-5), (".5", 0.5)])
def test_numbers_that_yaml_left_as_text_are_read(text: str, number: float) -> None:
    space = parse_space(entry("uniform", [text, 1]))

    assert space.parameters[0].domain == UniformDomain(number, 1.0)


def test_text_options_of_a_choice_stay_text() -> None:
    space = parse_space(entry("choice", ["1e-5", "2"]))

    assert place(space, {"x": "2"}) == {"x": 1}


def test_randint_with_one_number_starts_at_zero_and_warns() -> None:
    with pytest.warns(UserWarning, match="old form"):
        space = parse_space(entry("randint", [4]))

    assert space.parameters[0].domain == IntegerDomain(0, 4)


def test_paths_are_unique_over_the_tree() -> None:
    paths = [parameter.path for parameter in walk(parse_space(NESTED))]

    assert paths == ["model", "model/deep/layers", "lr"]


def test_place_gives_the_active_parameters() -> None:
    placed = place(parse_space(NESTED), {"lr": 0.1, "model": {"_name": "deep", "layers": 3}})

    assert placed == {"model": 1, "model/deep/layers": 3, "lr": 0.1}


@pytest.mark.parametrize(
    "configuration",
    [
        None,
        {},
        {"lr": 0.1},
        {"lr": 0.1, "model": "other"},
        {"lr": 2.0, "model": "plain"},
        {"lr": 0.1, "model": {"_name": "deep"}},
        {"lr": 0.1, "model": {"_name": "deep", "layers": 9}},
        {"lr": 0.1, "model": {"_name": "none", "layers": 3}},
        {"lr": 0.1, "model": {"_name": "none"}, "extra": 1},
    ],
)
def test_configurations_outside_the_space_are_recognised(configuration: object) -> None:
    assert not contains(parse_space(NESTED), configuration)


@pytest.mark.parametrize(
    "configuration",
    [
        {"lr": 0.1, "model": "plain"},
        {"lr": 1, "model": {"_name": "none"}},
        {"model": {"layers": 4, "_name": "deep"}, "lr": 1e-4},
    ],
)
def test_configurations_inside_the_space_are_recognised(configuration: object) -> None:
    assert contains(parse_space(NESTED), configuration)


def test_ignored_keys_do_not_count() -> None:
    placed = place(
        parse_space(entry("uniform", [0, 1])),
        {"x": 0.5, "TRIAL_BUDGET": 3},
        ignore=frozenset({"TRIAL_BUDGET"}),
    )

    assert placed == {"x": 0.5}


def test_place_names_the_parameter_that_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"'model/deep/layers'.*integer in"):
        place(parse_space(NESTED), {"lr": 0.1, "model": {"_name": "deep", "layers": 9}})


def test_integers_without_a_float_are_refused() -> None:
    with pytest.raises(ValueError, match="upper must be finite"):
        parse_space({"x": {"_type": "randint", "_value": [0, 10**4000]}})
