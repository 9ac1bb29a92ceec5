"""Ask-and-tell interface."""

import json
import math
import random
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from nni.errors import NoMoreTrialError
from nni.hpo import NoImprovement, RandomTuner, Study, StudyTrial, Tuner, Uniform

SPACE = {"x": {"_type": "uniform", "_value": [-1, 1]}}
TWO = {"x": {"_type": "choice", "_value": [1, 2]}}


def test_ask_gives_ids_from_zero_and_points_of_the_space() -> None:
    study = Study(SPACE, tuner="Random", seed=0)

    trials = [study.ask() for _ in range(5)]

    assert [trial.id for trial in trials] == [0, 1, 2, 3, 4]
    assert all(-1 <= trial.parameters["x"] <= 1 for trial in trials)


def test_best_follows_the_mode() -> None:
    low, high = Study(SPACE, seed=0), Study(SPACE, seed=0, optimize_mode="maximize")
    for study in (low, high):
        for value in (2.0, 1.0, 3.0):
            study.tell(study.ask(), value)

    assert low.best_value == 1.0
    assert low.best_trial.id == 1
    assert high.best_value == 3.0
    assert high.best_parameters == high.best_trial.parameters


def test_study_learns() -> None:
    study = Study(SPACE, seed=3)
    for _ in range(60):
        trial = study.ask()
        study.tell(trial, (trial.parameters["x"] - 0.3) ** 2)

    # Random search comes this close with probability 0.6 in 60 draws; TPE does for seeds 0 to 99.
    assert study.best_value < 1e-4


def test_same_seed_gives_the_same_study() -> None:
    def play(seed: int) -> list[object]:
        study = Study(SPACE, seed=seed)
        seen: list[object] = []
        for _ in range(25):
            trial = study.ask()
            seen.append(trial.parameters)
            study.tell(trial, trial.parameters["x"])
        return seen

    assert play(1) == play(1)
    assert play(1) != play(2)


def test_caller_may_take_the_parameters_apart() -> None:
    study = Study(SPACE, seed=0)
    trial = study.ask()
    x = trial.parameters.pop("x")

    study.tell(trial, 1.0)

    assert study.best_parameters == {"x": x}


def test_tell_takes_ids_and_dicts_and_failures() -> None:
    study = Study(SPACE, seed=0)
    first, second = study.ask(), study.ask()

    study.tell(first.id, {"default": 0.5, "more": [1]})
    study.tell(second, None)

    assert study.best_value == 0.5


@pytest.mark.claim("hpo", 8)
def test_values_that_are_not_finite_are_no_best_and_no_error() -> None:
    study = Study(SPACE, seed=0, optimize_mode="maximize")
    for value in (math.nan, math.inf, 1.0, -math.inf):
        study.tell(study.ask(), value)

    assert study.best_value == 1.0


@pytest.mark.parametrize("value", ["1", [1], {}, {"loss": 1}, True, {"default": "a"}])
def test_values_that_are_no_numbers_are_refused(value: object) -> None:
    study = Study(SPACE, seed=0)
    trial = study.ask()

    with pytest.raises(TypeError, match="value must be a number"):
        study.tell(trial, value)
    study.tell(trial, 1)


def test_only_an_open_trial_can_be_told() -> None:
    study = Study(SPACE, seed=0)
    trial = study.ask()
    study.tell(trial, 1)

    with pytest.raises(ValueError, match="must be open"):
        study.tell(trial, 1)
    with pytest.raises(ValueError, match="must be open"):
        study.tell(StudyTrial(7, {}), 1)


def test_best_before_any_result_says_so() -> None:
    with pytest.raises(ValueError, match="no trial has been told"):
        _ = Study(SPACE).best_value


def test_exhausted_space_raises_no_more_trial_error() -> None:
    study = Study(TWO, tuner="GridSearch")
    study.ask()
    study.ask()

    with pytest.raises(NoMoreTrialError, match="exhausted"):
        study.ask()


@pytest.mark.parametrize(
    ("tuner_args", "text"),
    [
        ({"optimize_mode": "maximize"}, r"tuner_args\['optimize_mode'\] must equal"),
        ({"seed": 4}, r"tuner_args\['seed'\] must equal"),
        ({"no_such": 4}, "unknown argument 'no_such'"),
    ],
)
def test_contradicting_tuner_args_are_refused(tuner_args: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Study(SPACE, tuner_args=tuner_args, seed=3)


def test_repeated_mode_and_seed_are_accepted() -> None:
    study = Study(SPACE, tuner_args={"optimize_mode": "minimize", "seed": 3}, seed=3)

    assert study.ask().parameters == Study(SPACE, seed=3).ask().parameters


def test_tuner_may_be_an_object() -> None:
    assert Study(SPACE, tuner=RandomTuner(seed=0)).ask().id == 0
    with pytest.raises(ValueError, match="tuner_args must be left out"):
        Study(SPACE, tuner=RandomTuner(), tuner_args={"seed": 1}, seed=1)


@pytest.mark.parametrize(
    ("space", "arguments", "text"),
    [
        ({"x": 1}, {}, "parameter 'x'"),
        (SPACE, {"tuner": "TBE"}, "tuner name must be one of"),
        (SPACE, {"optimize_mode": "min"}, "optimize_mode must be"),
    ],
)
def test_bad_arguments_are_refused(space: object, arguments: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Study(space, **arguments)  # type: ignore[arg-type] # wrong on purpose


def test_study_starts_no_thread() -> None:
    before = set(threading.enumerate())
    study = Study(SPACE, seed=0)
    for _ in range(15):
        study.tell(study.ask(), 1)

    # Threads of earlier tests may end meanwhile.
    assert set(threading.enumerate()) <= before


def test_trial_of_a_typed_space_has_both_forms() -> None:
    @dataclass
    class Point:
        x: Annotated[float, Uniform(-1, 1)]

    study = Study(Point, seed=0)
    trial = study.ask()
    study.tell(trial, 0.5)

    assert trial.configuration == Point(trial.parameters["x"])
    assert study.best_trial.configuration == trial.configuration


def test_configuration_of_a_plain_space_is_the_parameters() -> None:
    trial = Study(SPACE, seed=0).ask()

    assert trial.configuration is trial.parameters


BOTH = {"a": "minimize", "b": "maximize"}


def test_several_objectives_have_a_front_and_no_best() -> None:
    study = Study({"x": {"_type": "uniform", "_value": [0, 1]}}, optimize_mode=BOTH, seed=0)
    points = [(1.0, 1.0), (2.0, 2.0), (3.0, 1.0)]
    for a, b in points:
        study.tell(study.ask(), {"a": a, "b": b})

    assert [point.values for point in study.pareto_front] == [
        {"a": 1.0, "b": 1.0},
        {"a": 2.0, "b": 2.0},
    ]
    with pytest.raises(ValueError, match="see pareto_front"):
        _ = study.best_value
    with pytest.raises(TypeError, match="a dict with a number for 'b'"):
        study.tell(study.ask(), {"a": 1})


def test_the_best_trial_keeps_the_limits_on_outcomes() -> None:
    study = Study(
        {"x": {"_type": "uniform", "_value": [0, 1]}},
        constraints=[{"metric": "cost", "max": 5}],
        seed=0,
    )
    study.tell(study.ask(), {"default": 0.0, "cost": 9})
    study.tell(study.ask(), {"default": 2.0, "cost": 1})

    assert study.best_value == 2.0
    assert [point.values for point in study.pareto_front] == [{"default": 2.0}]


def test_enqueued_points_are_asked_first() -> None:
    study = Study({"x": {"_type": "uniform", "_value": [0, 1]}}, seed=0)
    study.enqueue({"x": 0.25})

    assert study.ask().parameters == {"x": 0.25}


def test_a_study_goes_on_from_another_one() -> None:
    space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
    first = Study(space, seed=0)
    for _ in range(40):
        trial = first.ask()
        first.tell(trial, (trial.parameters["x"] - 0.3) ** 2)

    second = Study(space, tuner="TPE", warm_start_from=first, seed=1)
    proposals = [second.ask().parameters["x"] for _ in range(10)]

    # Without results, ten draws of [-1, 1] lie 0.65 away from 0.3 on average.
    assert sum(abs(x - 0.3) for x in proposals) / 10 < 0.3


def test_a_rule_that_ends_the_search_says_why() -> None:
    study = Study({"x": {"_type": "uniform", "_value": [0, 1]}}, stop=NoImprovement(2), seed=0)
    for value in (1.0, 2.0, 2.0):
        study.tell(study.ask(), value)

    with pytest.raises(NoMoreTrialError, match="no improvement over 2 trials"):
        study.ask()
    assert study.stopped_because == "no improvement over 2 trials"


@pytest.mark.parametrize("tuner", ["auto", "TPE", "GridSearch", "Evolution"])
def test_study_goes_on_from_its_state(tuner: str) -> None:
    space = {"x": {"_type": "quniform", "_value": [0, 1, 0.05]}}
    studies = [Study(space, tuner=tuner, seed=3) for _ in range(2)]
    one, other = studies
    for _ in range(6):
        trial = one.ask()
        one.tell(trial, trial.parameters["x"])
    waiting = one.ask()

    other.load_state(json.loads(json.dumps(one.state())))
    for study in studies:
        study.tell(waiting.id, waiting.parameters["x"])

    assert other.results == one.results
    assert other.best_trial == one.best_trial
    for _ in range(6):
        asked = [study.ask() for study in studies]
        assert asked[0] == asked[1]
        for study, trial in zip(studies, asked, strict=True):
            study.tell(trial, trial.parameters["x"])


def test_rules_count_on_in_a_study_that_was_put_aside() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    one, other = (Study(space, stop=NoImprovement(3), seed=0) for _ in range(2))
    for value in (1.0, 2.0, 2.0):
        one.tell(one.ask(), value)

    other.load_state(one.state())
    other.tell(other.ask(), 2.0)

    assert other.stopped_because == "no improvement over 3 trials"
    with pytest.raises(NoMoreTrialError, match="no improvement"):
        other.ask()


def test_state_that_does_not_fit_is_refused() -> None:
    class Own(Tuner):
        def update_search_space(self, search_space: object) -> None:
            pass

        def receive_trial_result(self, *args: object, **kwargs: object) -> None:
            pass

    study = Study({"x": {"_type": "uniform", "_value": [0, 1]}}, seed=0)
    state = study.state()
    study.ask()

    with pytest.raises(ValueError, match="before the first ask"):
        study.load_state(state)
    with pytest.raises(ValueError, match="search space"):
        Study({"x": {"_type": "uniform", "_value": [0, 2]}}).load_state(state)
    with pytest.raises(TypeError, match="state and load_state"):
        Study({"x": {"_type": "uniform", "_value": [0, 1]}}, tuner=Own()).state()


def test_duplicates_are_not_asked_again_if_unwanted() -> None:
    study = Study({"x": {"_type": "randint", "_value": [0, 5]}}, duplicates="resample", seed=0)
    seen = []
    for _ in range(5):
        trial = study.ask()
        seen.append(trial.parameters["x"])
        study.tell(trial, 1.0)

    assert sorted(seen) == [0, 1, 2, 3, 4]
    with pytest.raises(NoMoreTrialError, match="exhausted"):
        study.ask()


def test_tuner_that_does_not_tell_how_it_searches() -> None:
    assert Study(SPACE, tuner="Random").explanation == ""


def test_default_tuner_tells_how_it_searches() -> None:
    assert Study(SPACE).explanation.startswith("1 parameter without branches: 5 points")


def threads() -> set[int]:
    """Return the threads of numpy's linear algebra: other packages bring libraries of their own."""
    return {
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and "numpy" in library["filepath"]
    }


class Looking(Tuner):
    """Notes how many threads it has."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def update_search_space(self, search_space: object) -> None:
        """Take any."""

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, float]:
        np.linalg.cholesky(np.eye(3))
        self.seen |= threads()
        return {"x": 1.0}

    def receive_trial_result(
        self, parameter_id: int, parameters: object, value: object, **kwargs: object
    ) -> None:
        """Learn nothing."""


def test_tuner_has_one_thread_and_the_caller_keeps_its_own() -> None:
    tuner = Looking()
    study = Study({}, tuner=tuner)

    with threadpool_limits(2, user_api="blas"):
        study.ask()
        after = threads()

    assert tuner.seen == {1}
    assert after == {2}


def test_added_trial_is_learned_and_may_be_the_incumbent() -> None:
    study = Study(SPACE, tuner="TPE", seed=0)
    trial = study.ask()
    study.tell(trial, 5.0)
    added = study.add_trial({"x": 0.25}, 0.5, {"source": "paper"})

    assert (added.id, study.best_trial, study.best_value) == (1, added, 0.5)
    assert study.results[-1][0].user_attrs == {"source": "paper"}
    assert study.ask().id == 2


def test_added_trial_lies_in_the_space_and_has_a_number() -> None:
    study = Study(SPACE, seed=0)

    with pytest.raises(ValueError, match=r"^parameters .* must lie in the search space"):
        study.add_trial({"x": 99}, 1)
    with pytest.raises(TypeError, match="value must be a number"):
        study.add_trial({"x": 0.5}, None)
    assert study.results == []


def test_added_trials_count_for_stopping_rules() -> None:
    study = Study(SPACE, stop=NoImprovement(2), seed=0)
    for value in (1, 2, 3):
        study.add_trial({"x": 0.5}, value)

    assert study.stopped_because == "no improvement over 2 trials"


@pytest.mark.parametrize("tuner", ["auto", "TPE", "GPTuner", "Random", "Evolution", "GridSearch"])
def test_copy_goes_on_independently(tuner: str) -> None:
    study = Study(TWO, tuner=tuner, seed=0)
    trial = study.ask()
    copied = study.copy()
    copied.tell(trial, 1)

    assert study.results == []
    study.tell(trial, 1)
    assert study.ask() == copied.ask()
    assert copied.best_value == 1


def test_attributes_of_a_trial_are_those_of_its_result() -> None:
    study = Study(SPACE, seed=0)
    trial = study.ask()
    trial.set_user_attr("weights", 1_000)
    study.tell(trial, 1)
    trial.set_user_attr("late", None)

    assert study.best_trial.user_attrs == {"weights": 1_000, "late": None}


def test_attributes_survive_the_state() -> None:
    study = Study(SPACE, seed=0)
    study.set_user_attr("data", "v2")
    told, open_trial = study.ask(), study.ask()
    told.set_user_attr("a", 1)
    open_trial.set_user_attr("b", [2])
    study.tell(told, 1)

    restored = Study(SPACE, seed=0)
    restored.load_state(json.loads(json.dumps(study.state())))
    restored.tell(open_trial.id, 2)

    assert restored.user_attrs == {"data": "v2"}
    assert [one.user_attrs for one, _ in restored.results] == [{"a": 1}, {"b": [2]}]


def test_state_without_attributes_is_loaded() -> None:
    study = Study(SPACE, seed=0)
    study.tell(study.ask(), 1)
    state = {key: part for key, part in study.state().items() if not key.endswith("attrs")}

    restored = Study(SPACE, seed=0)
    restored.load_state(state)

    assert restored.best_value == 1


def test_attribute_must_be_json() -> None:
    study = Study(SPACE, seed=0)

    with pytest.raises(TypeError, match="user attribute 'model' must be a JSON value"):
        study.set_user_attr("model", object())
    with pytest.raises(TypeError, match="user attribute 'model' must be a JSON value"):
        study.ask().set_user_attr("model", object())


def test_stopped_trial_is_no_failed_one() -> None:
    study = Study({"x": {"_type": "uniform", "_value": [0, 1]}}, tuner="TPE", seed=0)
    stopped, failed = study.ask(), study.ask()

    study.tell(stopped, None, stopped=True)
    study.tell(failed, None)

    learnt = study.state()["tuner"]["tuner"]["failed"]
    assert [configuration for configuration, _ in learnt] == [failed.parameters]


@pytest.mark.parametrize("tuner", ["auto", "TPE", "GPTuner"])
def test_stopped_trial_teaches_what_it_has_shown(tuner: str) -> None:
    study = Study({"x": {"_type": "uniform", "_value": [0, 1]}}, tuner=tuner, seed=0)
    study.tell(study.ask(), 1.0, intermediate=[3.0, 1.0])

    study.tell(study.ask(), None, stopped=True, intermediate=[4.0])

    assert [loss for _, loss in study.state()["tuner"]["tuner"]["observed"]] == [1.0, 2.0]
    assert study.best_value == 1.0
    assert len(study.results) == 1


def noisy_study(tuner: str, deviation: float, mode: str = "minimize") -> Study:
    """Return a study of a noisy parabola; its sign is that of the mode."""
    noise = random.Random(3)
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    study = Study(space, tuner=tuner, optimize_mode=mode, seed=0)
    sign = 1 if mode == "minimize" else -1
    for _ in range(25):
        trial = study.ask()
        study.tell(trial, sign * ((trial.parameters["x"] - 0.4) ** 2 + noise.gauss(0, deviation)))
    return study


@pytest.mark.parametrize("mode", ["minimize", "maximize"])
def test_recommended_trial_is_not_the_luckiest_one(mode: str) -> None:
    study = noisy_study("auto", 0.2, mode)

    found = study.recommended

    assert not found.measured
    assert abs(found.value) < abs(study.best_value)  # the best of 25 is about two deviations off
    assert found.trial in [trial for trial, _ in study.results]


@pytest.mark.parametrize(("tuner", "deviation"), [("TPE", 0.2), ("auto", 0.0)])
def test_measured_value_is_recommended_where_no_noise_is_modelled(
    tuner: str, deviation: float
) -> None:
    study = noisy_study(tuner, deviation)

    found = study.recommended

    assert (found.trial, found.value, found.measured) == (study.best_trial, study.best_value, True)


def test_asking_for_the_recommended_trial_changes_no_proposal() -> None:
    first, second = noisy_study("auto", 0.2), noisy_study("auto", 0.2)

    assert first.recommended == first.recommended

    assert first.ask() == second.ask()


def test_run_times_of_told_and_added_trials_are_learned_by_a_cost_aware_tuner() -> None:
    study = Study(SPACE, tuner_args={"cost_aware": True}, seed=0)

    study.tell(study.ask(), 1.0, duration=timedelta(minutes=1))
    study.add_trial({"x": 0.5}, 2.0, duration=2.5)
    study.tell(study.ask(), None, duration=7)

    state = study.state()["tuner"]["tuner"]["costs"]
    assert [seconds for _, seconds in state["measured"]] == [60.0, 2.5]
    assert state["spent_s"] == 69.5


def test_run_times_are_ignored_by_other_tuners_but_must_be_positive() -> None:
    study = Study(SPACE, tuner="Random", seed=0)
    trial = study.ask()

    with pytest.raises(ValueError, match="duration must be a finite number of seconds > 0"):
        study.tell(trial, 1.0, duration=0)
    study.tell(trial, 1.0, duration=3)

    assert study.best_value == 1.0


def test_cost_aware_study_repeats_with_its_run_times() -> None:
    def play() -> list[float]:
        study = Study(SPACE, tuner_args={"cost_aware": True}, seed=1)
        seen = []
        for _ in range(8):
            trial = study.ask()
            x = trial.parameters["x"]
            study.tell(trial, x * x, duration=10**x)
            seen.append(x)
        return seen

    assert play() == play()
