"""Arguments of shared studies: configuration, and the check of those who join."""

from __future__ import annotations

from typing import Any

import pytest

from nni.experiment.study_arguments import (
    LOST_RETRIES,
    StudyArguments,
    arguments_of,
    check_join,
    check_name,
    study_config,
)
from nni_proto.experiment.v1 import config_pb2

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}, "y": {"_type": "choice", "_value": [1, 2]}}
FULL = StudyArguments(SPACE, "TPE", {"n_startup_trials": 5}, "maximize", 7, True)


@pytest.mark.parametrize("name", ["study", "a1b2", "x" * 32])
def test_a_name_is_the_id_of_an_experiment(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["abc", "x" * 33, "Study", "my-study", "", 5])
def test_another_name_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="name must be 4 to 32"):
        check_name(name)


def test_the_arguments_of_a_study_are_those_of_its_creator() -> None:
    assert arguments_of("study", study_config("study", FULL)) == FULL


def test_a_creator_that_leaves_arguments_out_draws_a_seed_and_takes_the_defaults() -> None:
    config = study_config("study", StudyArguments(SPACE))

    found = arguments_of("study", config)

    assert (found.tuner, found.optimize_mode, found.retry_lost) == ("auto", "minimize", False)
    assert found.seed is not None
    assert config.HasField("callers")


def test_lost_trials_are_asked_again_only_on_request_and_not_for_ever() -> None:
    assert study_config("study", StudyArguments(SPACE)).max_trial_retries == 0
    assert study_config("study", FULL).max_trial_retries == LOST_RETRIES


def test_an_experiment_of_agents_is_no_study() -> None:
    with pytest.raises(ValueError, match="agents run the trials"):
        arguments_of("study", config_pb2.ExperimentConfig())


def test_arguments_that_are_left_out_join_any_study() -> None:
    check_join("study", StudyArguments(), FULL)


def test_equal_arguments_join_whatever_the_order_of_keys_and_the_spelling_of_one_objective() -> (
    None
):
    turned = dict(reversed(SPACE.items()))

    check_join("study", StudyArguments(turned, optimize_mode={"default": "maximize"}), FULL)


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("search_space", {"x": SPACE["x"]}),
        ("tuner", "Random"),
        ("tuner_args", {}),
        ("optimize_mode", "minimize"),
        ("seed", 8),
        ("retry_lost", False),
    ],
)
def test_the_first_argument_that_differs_is_named_with_both_values(field: str, other: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{field} must be that of the study 'study'") as caught:
        check_join("study", StudyArguments(**{field: other}), FULL)

    assert repr(other)[:20] in str(caught.value)
    assert repr(getattr(FULL, field))[:20] in str(caught.value)


def test_several_objectives_are_kept() -> None:
    modes = {"loss": "minimize", "accuracy": "maximize"}
    arguments = StudyArguments(SPACE, optimize_mode=modes)

    found = arguments_of("study", study_config("study", arguments))

    assert found.optimize_mode == modes


def test_a_tuner_object_and_values_that_are_no_json_are_refused() -> None:
    with pytest.raises(TypeError, match="tuner must be the name"):
        StudyArguments(tuner=object()).check()  # type: ignore[arg-type] # the mistake
    with pytest.raises(TypeError, match="search_space must be a JSON value"):
        StudyArguments(search_space={"x": object()}).check()
    with pytest.raises(ValueError, match="optimize_mode must be"):
        StudyArguments(optimize_mode="best").check()
