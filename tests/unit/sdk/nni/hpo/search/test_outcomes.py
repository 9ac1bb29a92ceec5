"""Incumbent and Pareto front of a search."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from nni.hpo import RandInt
from nni.hpo.objectives import objectives_of
from nni.hpo.search.outcomes import Outcomes, StudyTrial
from nni.hpo.space.typed_space import TypedSpace


@dataclass
class Demo:
    x: Annotated[int, RandInt(0, 9)] = 1


def outcomes(
    values: list[object], mode: str | dict[str, str], limits: list[dict[str, object]] | None = None
) -> Outcomes:
    found = Outcomes(objectives_of(mode, limits))
    for number, value in enumerate(values):
        found.add(StudyTrial(number, {"x": number}), value)
    return found


def test_trial_is_shown_and_compared_by_id_and_parameters() -> None:
    plain, other = StudyTrial(3, {"x": 1}), StudyTrial(3, {"x": 1})
    other.set_user_attr("size", 7)
    typed = StudyTrial(3, {"x": 1}, TypedSpace(Demo))

    assert repr(other) == "StudyTrial(id=3, parameters={'x': 1})"
    assert repr(typed) == repr(plain)
    assert plain == other == typed
    assert plain != StudyTrial(4, {"x": 1})
    assert (plain.user_attrs, other.user_attrs) == ({}, {"size": 7})


def test_best_is_the_first_of_equal_ones_within_the_limits() -> None:
    found = outcomes(
        [{"default": 3, "ms": 5}, {"default": 9, "ms": 11}, {"default": 7, "ms": 1},
         {"default": 7, "ms": 2}],
        "maximize", [{"metric": "ms", "max": 10}],
    )  # fmt: skip

    value, trial = found.best()

    assert (value, trial.id) == (7, 2)
    assert [point.trial.id for point in found.front()] == [2, 3]


def test_front_of_several_objectives_has_no_best() -> None:
    found = outcomes(
        [{"a": 1, "b": 3}, {"a": 2, "b": 2}, {"a": 3, "b": 3}, {"a": float("nan"), "b": 0}],
        {"a": "minimize", "b": "minimize"},
    )

    assert [point.values for point in found.front()] == [{"a": 1, "b": 3}, {"a": 2, "b": 2}]
    with pytest.raises(ValueError, match="see pareto_front"):
        found.best()


def test_nothing_finite_is_no_best() -> None:
    found = outcomes([float("inf")], "minimize")

    assert found.front() == []
    with pytest.raises(ValueError, match="no trial has been told a finite value"):
        found.best()


@pytest.mark.parametrize(("mode", "chosen"), [("minimize", 2), ("maximize", 0)])
def test_recommended_trial_has_the_best_expected_value(mode: str, chosen: int) -> None:
    outcomes = Outcomes(objectives_of(mode))
    for number, value in enumerate([1.0, float("nan"), 3.0, 2.0]):
        outcomes.add(StudyTrial(number, {"x": number}), value)

    found = outcomes.recommended(lambda configurations: [9.0, 1.0, 4.0][: len(configurations)])

    assert (found.trial.id, found.measured) == (chosen, False)
    assert found.value in {9.0, 1.0}


def test_incumbent_is_recommended_where_nothing_is_expected() -> None:
    outcomes = Outcomes(objectives_of("minimize"))
    for number, value in enumerate([2.0, 1.0]):
        outcomes.add(StudyTrial(number, {"x": number}), value)

    found = outcomes.recommended(lambda _: None)

    assert (found.trial.id, found.value, found.measured) == (1, 1.0, True)


def test_recommended_trial_is_within_the_limits() -> None:
    found = outcomes(
        [{"default": 1, "ms": 11}, {"default": 2, "ms": 10}, {"default": 3, "ms": 1}],
        "minimize", [{"metric": "ms", "max": 10}],
    ).recommended(lambda configurations: [float(one["x"]) for one in configurations])  # fmt: skip

    assert (found.trial.id, found.value) == (1, 1.0)


def test_configuration_is_an_object_of_the_type_that_declares_the_space() -> None:
    assert StudyTrial(0, {"x": 3}, TypedSpace(Demo)).configuration == Demo(3)
    assert StudyTrial(0, {"x": 3}).configuration == {"x": 3}


@pytest.mark.parametrize("circular", [False, True])
def test_attribute_that_json_cannot_hold_is_refused(circular: bool) -> None:
    trial = StudyTrial(0, {})
    value: list[object] = [{1, 2}]
    if circular:
        value[0] = value

    with pytest.raises(TypeError, match="user attribute 'size' must be a JSON value, got "):
        trial.set_user_attr("size", value)

    assert trial.user_attrs == {}
