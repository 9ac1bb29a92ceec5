"""Feasibility of configurations that users give."""

from typing import Any

from nni.hpo.space.feasibility import broken_constraints

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
