"""Behaviour that `nni.hpo.Study` and `nni.experiment.SharedStudy` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest

from nni.errors import NoMoreTrialError

Make: TypeAlias = Callable[..., Any]
"""Makes a study that no other one shares, from a search space and the arguments of both classes."""
SPACE: Final = {"x": {"_type": "uniform", "_value": [-1, 1]}}
THREE: Final = {"x": {"_type": "choice", "_value": [1, 2, 3]}}


def ids_count_from_zero_and_configurations_lie_in_the_space(make: Make) -> None:
    study = make(SPACE, tuner="Random", seed=0)

    trials = [study.ask() for _ in range(3)]

    assert [trial.id for trial in trials] == [0, 1, 2]
    assert all(-1 <= trial.parameters["x"] <= 1 for trial in trials)


def the_best_follows_the_mode_and_is_the_first_of_its_value(make: Make) -> None:
    study = make(SPACE, tuner="TPE", optimize_mode="maximize")
    for value in (2.0, 3.0, 1.0, 3.0):
        study.tell(study.ask(), value)

    assert study.best_value == 3.0
    assert study.best_trial.id == 1
    assert study.best_parameters == study.best_trial.parameters
    assert [value for _, value in study.results] == [2.0, 3.0, 1.0, 3.0]
    assert [point.trial.id for point in study.pareto_front] == [1, 3]


def a_failed_or_stopped_trial_is_no_result(make: Make) -> None:
    study = make(SPACE, tuner="Random")
    study.tell(study.ask(), None)
    study.tell(study.ask(), None, stopped=True)

    assert study.results == []
    with pytest.raises(ValueError, match="no trial has been told"):
        _ = study.best_value


def another_result_and_an_unknown_trial_are_refused(make: Make) -> None:
    study = make(SPACE, tuner="Random")
    trial = study.ask()
    study.tell(trial, 1.0)

    with pytest.raises(ValueError, match=r"told before|unknown"):
        study.tell(trial, 2.0)
    with pytest.raises(ValueError, match="trial must be"):
        study.tell(99, 1.0)
    with pytest.raises(TypeError, match="value must be"):
        study.tell(study.ask(), "good")


def an_enqueued_configuration_comes_first_and_is_learned(make: Make) -> None:
    study = make(SPACE, tuner="TPE")
    study.enqueue({"x": 0.25})

    trial = study.ask()
    study.tell(trial, 0.5)

    assert trial.parameters == {"x": 0.25}
    assert study.best_parameters == {"x": 0.25}
    with pytest.raises(ValueError, match="search space"):
        study.enqueue({"x": 5})


def a_trial_of_elsewhere_is_a_result(make: Make) -> None:
    study = make(SPACE, tuner="TPE")

    added = study.add_trial({"x": 0.5}, 0.25)
    trial = study.ask()

    assert (added.id, trial.id) == (0, 1)
    assert study.best_trial == added


def an_exhausted_tuner_ends_the_study(make: Make) -> None:
    study = make(THREE, tuner="GridSearch")
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, trial.parameters["x"])

    with pytest.raises(NoMoreTrialError):
        study.ask()
    assert study.best_value == 1


def several_objectives_have_a_front(make: Make) -> None:
    study = make(THREE, tuner="GridSearch", optimize_mode={"a": "minimize", "b": "maximize"})
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, {"a": trial.parameters["x"], "b": 1 if trial.parameters["x"] < 3 else 0})

    assert [point.values for point in study.pareto_front] == [{"a": 1.0, "b": 1.0}]
    with pytest.raises(ValueError, match="several objectives"):
        _ = study.best_value


CASES: Final = (
    ids_count_from_zero_and_configurations_lie_in_the_space,
    the_best_follows_the_mode_and_is_the_first_of_its_value,
    a_failed_or_stopped_trial_is_no_result,
    another_result_and_an_unknown_trial_are_refused,
    an_enqueued_configuration_comes_first_and_is_learned,
    a_trial_of_elsewhere_is_a_result,
    an_exhausted_tuner_ends_the_study,
    several_objectives_have_a_front,
)
