"""Search whose objective suggests its hyperparameters."""

import math
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from nni.hpo import (
    DefineByRunStudy,
    DefineByRunTrial,
    FixedTrial,
    NoImprovement,
    NoMoreTrialError,
    Tuner,
    importances,
    optimize,
)


def branches(trial: Any) -> float:
    """Objective with a condition, whose minimum is 0 at kind 'b' and y = 3."""
    if trial.suggest_categorical("kind", ["a", "b"]) == "a":
        return 1.0 + float(trial.suggest_float("x", 0, 1))
    return abs(float(trial.suggest_int("y", 1, 9)) - 3)


def searched(objective: Callable[[Any], float], count: int, **arguments: Any) -> DefineByRunStudy:
    study = DefineByRunStudy(**arguments)
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, objective(trial))
    return study


@pytest.mark.parametrize("tuner", ["TPE", "auto", "Random", "Evolution"])
def test_conditional_hyperparameters_are_found(tuner: str) -> None:
    study = searched(branches, 60, tuner=tuner, seed=1)

    # A random trial has kind 'b' and y of 2 to 4 with probability 1/6: not one of 60 has with 2e-5.
    assert study.best_value <= 1
    assert set(study.best_parameters) == {"kind", "y"}
    assert study.search_space == {
        "kind": {"_type": "choice", "_value": ["a", "b"]},
        "x": {"_type": "uniform", "_value": [0.0, 1.0]},
        "y": {"_type": "randint", "_value": [1, 10]},
    }


def test_trial_has_the_hyperparameters_that_it_suggested() -> None:
    study = searched(branches, 20, tuner="Random", seed=0)

    names = {tuple(sorted(trial.parameters)) for trial, _ in study.results}
    assert names == {("kind", "x"), ("kind", "y")}


def test_same_seed_gives_the_same_trials() -> None:
    first, second = (searched(branches, 15, tuner="TPE", seed=3).results for _ in range(2))

    assert first == second


def test_tuner_of_a_grown_space_does_not_repeat_the_first_draws() -> None:
    found = []
    study = DefineByRunStudy(tuner="Random", seed=0)
    for number in range(6):
        trial = study.ask()
        found.append(trial.suggest_float("x", 0, 1))
        if number >= 3:
            trial.suggest_float("y", 0, 1)
        study.tell(trial, 1.0)

    assert len(set(found)) == 6


def test_tuner_learns_from_the_results() -> None:
    study = searched(
        lambda trial: float(trial.suggest_float("x", -1, 1) ** 2), 40, tuner="TPE", seed=0
    )

    # Uniform draws over [-1, 1] would have a mean square of 1/3.
    last = [value for _, value in study.results[-10:]]
    assert sum(last) / len(last) < 0.1


class Recorder(Tuner):
    """Tuner that records what it learns; a copy shares the record."""

    learned: list[tuple[dict[str, Any], float]]

    def __init__(self) -> None:
        self.learned = []

    def __deepcopy__(self, _memory: object) -> "Recorder":
        copied = Recorder()
        copied.learned = self.learned
        return copied

    def update_search_space(self, search_space: Any) -> None:
        self.names = list(search_space)

    def generate_parameters(self, parameter_id: int, **_: object) -> Any:
        return dict.fromkeys(self.names, 0)

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **_: object
    ) -> None:
        self.learned.append((parameters, value))

    def import_data(self, data: Any) -> None:
        self.learned += [(sample["parameter"], sample["value"]) for sample in data]


def test_all_results_are_learned_when_a_hyperparameter_is_new() -> None:
    recorder = Recorder()
    study = DefineByRunStudy(tuner=recorder, seed=0)
    for count in (1, 1, 2):
        trial = study.ask()
        study.tell(trial, sum(trial.suggest_int(f"x{n}", 0, 0) for n in range(count)) + count)

    after_growth = recorder.learned[-3:]
    assert [value for _, value in after_growth] == [1, 1, 2]
    assert all(set(parameters) == {"x0", "x1"} for parameters, _ in after_growth)


def test_trial_that_was_asked_before_the_space_grew_is_learned() -> None:
    recorder = Recorder()
    study = DefineByRunStudy(tuner=recorder, seed=0)
    early, late = study.ask(), study.ask()
    study.tell(late, late.suggest_int("x", 0, 5))
    study.tell(early, early.suggest_int("x", 0, 5) + 100)

    assert recorder.learned[-1][1] >= 100


class FailureRecorder(Recorder):
    """`Recorder` that learns failed trials, too."""

    imports_failures: ClassVar[bool] = True

    def __deepcopy__(self, _memory: object) -> "FailureRecorder":
        copied = FailureRecorder()
        copied.learned = self.learned
        return copied


@pytest.mark.parametrize(("stopped", "failures"), [(False, 1), (True, 0)])
def test_failed_trial_is_learned_again_when_a_hyperparameter_is_new(
    stopped: bool, failures: int
) -> None:
    recorder = FailureRecorder()
    study = DefineByRunStudy(tuner=recorder, stop=NoImprovement(4), seed=0)
    for value in (None, 1.0, 2.0):
        trial = study.ask()
        trial.suggest_int("x", 0, 999)  # drawn for the first trial, then 0
        study.tell(trial, value, stopped=stopped)
    recorder.learned.clear()
    trial = study.ask()
    trial.suggest_int("new", 0, 0)
    study.tell(trial, 3.0)

    finite = [value for _, value in recorder.learned if not math.isnan(value)]
    assert finite == [1.0, 2.0, 3.0]
    assert len(recorder.learned) == 3 + failures
    assert all(set(parameters) == {"x", "new"} for parameters, _ in recorder.learned)
    assert [value for _, value in study.results] == [1.0, 2.0, 3.0]
    assert study.stopped_because == ""


def test_failed_trial_declares_its_hyperparameters() -> None:
    study = DefineByRunStudy(seed=0)
    trial = study.ask()
    trial.suggest_int("x", 0, 5)
    study.tell(trial, None)

    assert list(study.search_space) == ["x"]
    assert study.results == []


def test_another_range_in_a_later_trial_is_refused() -> None:
    study = DefineByRunStudy(seed=0)
    study.ask().suggest_int("x", 0, 5)

    with pytest.raises(ValueError, match="'x' must have the same range in all trials"):
        study.ask().suggest_int("x", 0, 6)


def test_name_has_one_value_in_a_trial() -> None:
    trial = DefineByRunStudy(seed=0).ask()

    assert trial.suggest_float("x", 0, 1) == trial.suggest_float("x", 0, 1)


def test_enqueued_values_come_first() -> None:
    study = DefineByRunStudy(tuner="TPE", seed=0)
    study.enqueue({"x": 3})
    for _ in range(2):
        trial = study.ask()
        study.tell(trial, trial.suggest_int("x", 0, 5) + trial.suggest_float("y", 0, 1))
    study.enqueue({"x": 4})

    assert study.results[0][0].parameters["x"] == 3
    assert study.ask().suggest_int("x", 0, 5) == 4


def test_enqueued_value_outside_its_range_fails_where_it_is_suggested() -> None:
    study = searched(lambda trial: float(trial.suggest_int("x", 0, 5)), 1, seed=0)
    study.enqueue({"x": 9})

    with pytest.raises(ValueError, match=r"value of 'x' must lie in \[0, 5\]"):
        study.ask().suggest_int("x", 0, 5)


def test_earlier_results_are_learned_where_they_fit() -> None:
    recorder = Recorder()
    earlier = [
        {"parameter": {"x": 2, "other": 1}, "value": 7.0},
        {"parameter": {"x": 99}, "value": 8.0},
    ]
    study = DefineByRunStudy(tuner=recorder, warm_start_from=earlier, seed=0)
    trial = study.ask()
    study.tell(trial, trial.suggest_int("x", 0, 5))

    assert recorder.learned[0] == ({"x": 2}, 7.0)
    assert 8.0 not in [value for _, value in recorder.learned]


def test_stopping_rule_counts_all_trials() -> None:
    study = DefineByRunStudy(tuner="Random", stop=NoImprovement(4), seed=0)
    for _ in range(5):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        study.tell(trial, 1.0)

    assert study.stopped_because == "no improvement over 4 trials"
    with pytest.raises(NoMoreTrialError, match="no improvement"):
        study.ask()


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="tuner"):
        DefineByRunStudy(tuner="none such")
    with pytest.raises(ValueError, match="duplicates"):
        DefineByRunStudy(duplicates="other")  # type: ignore[arg-type]  # the error is tested


def test_told_trial_suggests_no_more() -> None:
    study = DefineByRunStudy(seed=0)
    trial = study.ask()
    study.tell(trial, 1.0)

    with pytest.raises(ValueError, match="must be open"):
        trial.suggest_int("x", 0, 1)
    with pytest.raises(ValueError, match="must be open"):
        study.tell(trial, 1.0)


def test_values_of_concurrent_trials_do_not_depend_on_their_order() -> None:
    forward, backward = DefineByRunStudy(seed=0), DefineByRunStudy(seed=0)
    first, second = forward.ask(), forward.ask()
    expected = [first.suggest_float("x", 0, 1), second.suggest_float("x", 0, 1)]
    first, second = backward.ask(), backward.ask()

    found = [second.suggest_float("x", 0, 1), first.suggest_float("x", 0, 1)]

    assert found == expected[::-1]


def test_several_objectives_have_a_front() -> None:
    study = DefineByRunStudy(tuner="TPE", optimize_mode={"a": "minimize", "b": "minimize"}, seed=0)
    for _ in range(8):
        trial = study.ask()
        x = trial.suggest_float("x", 0, 1)
        study.tell(trial, {"a": x, "b": 1 - x})

    assert len(study.pareto_front) == 8


def test_optimize_calls_the_objective_with_a_trial_in_threads() -> None:
    names = set()

    def objective(trial: DefineByRunTrial) -> float:
        names.add(threading.current_thread().name)
        trial.set_user_attr("twice", 2 * trial.suggest_float("x", 0, 1))
        return branches(trial)

    result = optimize(objective, tuner="Random", trials=12, concurrency=3, seed=0)

    assert len(result.trials) == 12
    assert all(one.user_attrs["twice"] == 2 * one.parameters["x"] for one in result.trials)
    assert threading.current_thread().name not in names


def test_reports_reach_the_assessor() -> None:
    def objective(trial: DefineByRunTrial) -> float:
        for _ in range(30):
            trial.report(trial.suggest_float("x", 0, 1))
            if trial.should_stop():
                break
        return 1.0

    result = optimize(objective, tuner="Random", assessor="Medianstop", trials=12, seed=0)

    assert {one.status for one in result.trials} == {"SUCCEEDED", "EARLY_STOPPED"}


def test_importance_of_the_discovered_space() -> None:
    study = DefineByRunStudy(tuner="Random", seed=0)
    for _ in range(30):
        trial = study.ask()
        big, small = trial.suggest_float("big", 0, 1), trial.suggest_int("small", 1, 3)
        study.tell(trial, 10 * big + 0.01 * small)

    shares = importances(study.search_space, study).shares
    assert shares["big"] > shares["small"]


def test_advisor_needs_a_declared_space() -> None:
    with pytest.raises(ValueError, match="search_space must be given with an advisor"):
        optimize(lambda trial: trial.suggest_int("x", 0, 1), advisor="ASHA")


def test_fixed_trial_evaluates_the_objective_alone() -> None:
    trial = FixedTrial({"kind": "b", "y": 5})
    trial.report(0.5)
    trial.set_user_attr("note", "by hand")

    assert branches(trial) == 2
    assert (trial.intermediate, trial.user_attrs) == ([0.5], {"note": "by hand"})
    assert not trial.should_stop()


def test_fixed_trial_needs_every_value_within_its_range() -> None:
    with pytest.raises(ValueError, match="must have a value for 'y'"):
        branches(FixedTrial({"kind": "b"}))
    with pytest.raises(ValueError, match=r"value of 'y' must lie in \[1, 9\]"):
        branches(FixedTrial({"kind": "b", "y": 10}))


def test_added_trial_is_learned_and_may_be_the_incumbent() -> None:
    recorder = Recorder()
    study = DefineByRunStudy(tuner=recorder, seed=0)
    before = study.add_trial({"x": 2}, 7.0, {"source": "paper"})
    outside = study.add_trial({"x": 99}, 9.0)
    trial = study.ask()
    study.tell(trial, 8.0 + trial.suggest_int("x", 0, 5))
    after = study.add_trial({"x": 3}, 6.0)

    assert [one.id for one in (before, outside, trial, after)] == [0, 1, 2, 3]
    assert study.best_trial == after
    assert before.user_attrs == {"source": "paper"}
    learned = [value for _, value in recorder.learned]
    assert 7.0 in learned
    assert 6.0 in learned
    assert 9.0 not in learned


def test_added_trial_lies_within_known_ranges() -> None:
    study = searched(lambda trial: float(trial.suggest_int("x", 0, 5)), 1, seed=0)

    with pytest.raises(ValueError, match=r"value of 'x' must lie in \[0, 5\]"):
        study.add_trial({"x": 9}, 1.0)
    with pytest.raises(TypeError, match="value must be a number"):
        study.add_trial({"x": 2}, "text")
    with pytest.raises(TypeError, match="parameters must be a dict"):
        study.add_trial([9], 1.0)  # type: ignore[arg-type]  # the error is tested


def test_run_times_are_learned_again_when_a_trial_suggests_more() -> None:
    study = DefineByRunStudy(tuner="auto", tuner_args={"cost_aware": True}, seed=0)
    for count in range(1, 3):
        for _ in range(2):
            trial = study.ask()
            values = [trial.suggest_int(f"x{number}", 0, 5) for number in range(count)]
            study.tell(trial, float(sum(values)), duration=2.0)

    inner = study._inner

    assert inner is not None
    costs = inner.state()["tuner"]["tuner"]["costs"]
    assert [seconds for _, seconds in costs["measured"]] == [2.0] * 4


def test_tuner_learns_enqueued_values_once() -> None:
    recorder = Recorder()
    study = DefineByRunStudy(tuner=recorder, seed=0)
    first = study.ask()
    study.tell(first, first.suggest_int("x", 0, 9))
    recorder.learned.clear()

    study.enqueue({"x": 7})
    trial = study.ask()
    study.tell(trial, trial.suggest_int("x", 0, 9))

    assert recorder.learned == [({"x": 7}, 7)]
