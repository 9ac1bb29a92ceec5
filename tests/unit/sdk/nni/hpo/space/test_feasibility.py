"""Feasibility of configurations that users give."""

from typing import Any

import pytest

from nni.hpo.space.constraints import InfeasibleSpaceError
from nni.hpo.space.feasibility import broken_constraints, combine_params, read_parameters

SPACE: dict[str, Any] = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "uniform", "_value": [0, 1]},
    "_constraints": ["x <= y", {"_forbid": {"x": 0.5}}],
}


def test_first_violated_constraint_is_returned() -> None:
    configurations = [{"x": 0.1, "y": 0.2}, {"x": 0.3, "y": 0.2}, {"x": 0.5, "y": 0.9}]

    broken = broken_constraints(SPACE, configurations)

    assert broken == ["", "x <= y", '{"_forbid":{"x":0.5}}']


def test_parameters_that_are_missing_or_outside_the_space_are_no_matter() -> None:
    assert broken_constraints(SPACE, [{"x": 7.0}, {"x": 7.0, "y": 8.0}, "text", None]) == [""] * 4


def test_constraints_of_a_batch_are_about_its_options() -> None:
    batch = {
        "combine_params": {"_type": "choice", "_value": [{"a": 1}, {"a": 2}]},
        "_constraints": ["a < 2"],
    }

    assert broken_constraints(batch, [{"a": 1}, {"a": 2}]) == ["", "a < 2"]


def test_spaces_of_custom_tuners_have_no_constraints() -> None:
    spaces: list[Any] = [{}, [], "anything", {"_constraints": "mine"}]

    for space in (*spaces, {"a": 1, "_constraints": ["a<1"]}):
        assert broken_constraints(space, [{"a": 1}]) == [""]


@pytest.mark.parametrize(
    "options",
    [[1, 2], ["a", {"b": 1}], [{"_name": "a"}, {"_name": "b"}], [{"a": 1}, {"_name": "b"}]],
)
def test_a_choice_that_is_no_list_of_configurations_is_a_parameter(options: list[Any]) -> None:
    space = read_parameters({"combine_params": {"_type": "choice", "_value": options}})

    assert [parameter.key for parameter in space.parameters] == ["combine_params"]


def test_a_list_of_configurations_has_no_parameters() -> None:
    options = [{"a": 1}, {"a": 2}]

    with pytest.raises(ValueError, match="has no parameters"):
        read_parameters({"combine_params": {"_type": "choice", "_value": options}})
    assert read_parameters({"other": {"_type": "choice", "_value": options}}).keys == {"other"}


def test_batch_has_only_its_feasible_configurations() -> None:
    entry = {"_type": "choice", "_value": [{"a": 1}, {"a": 2}, {"a": 3}]}

    assert combine_params({"any": entry}) == entry["_value"]
    assert combine_params({"any": entry, "_constraints": ["a != 2"]}) == [{"a": 1}, {"a": 3}]
    with pytest.raises(InfeasibleSpaceError, match="none of 3 configurations"):
        combine_params({"any": entry, "_constraints": ["a > 3"]})


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (None, "search space of BatchTuner must be"),
        ({}, "search space of BatchTuner must be"),
        ({"_constraints": []}, "search space of BatchTuner must be"),
        ({"a": {}, "b": {}}, "search space of BatchTuner must be"),
        ({"a": [1]}, "_type must be 'choice'"),
        ({"a": {"_type": "uniform", "_value": [{"x": 1}]}}, "_type must be 'choice'"),
        ({"a": {"_type": "choice", "_value": ({"x": 1},)}}, "must be a non-empty list"),
        ({"a": {"_type": "choice", "_value": []}}, "must be a non-empty list"),
        ({"a": {"_type": "choice", "_value": [{"x": 1}, 2]}}, "every option must be a complete"),
        ({"a": {"_type": "choice", "_value": [{"_name": "x"}]}}, "every option must be a complete"),
        (
            {"a": {"_type": "choice", "_value": [{"x": 1}], "_prior": {"value": 1}}},
            "_prior is not supported",
        ),
    ],
)
def test_other_spaces_are_no_batch(space: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        combine_params(space)
