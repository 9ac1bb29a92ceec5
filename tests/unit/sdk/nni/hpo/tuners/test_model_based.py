"""Book-keeping of the tuners with a model, shown by the simplest of them."""

import json

import pytest

from nni.hpo import GPTuner
from nni.hpo.json_value import JsonValue
from nni.hpo.tuners._model_based import ModelBasedTuner

LINE = {"x": {"_type": "uniform", "_value": [0, 1]}}
THREE = {"x": {"_type": "choice", "_value": [1, 2, 3]}}


def tuner_of(space: JsonValue, cold_start_num: int = 10) -> GPTuner:
    tuner = GPTuner("minimize", cold_start_num=cold_start_num, seed=1)
    tuner.update_search_space(space)
    return tuner


def observed(tuner: GPTuner) -> list[JsonValue]:
    results: list[JsonValue] = tuner.state()["observed"]
    return results


@pytest.mark.parametrize("cold_start_num", [1, 10])
def test_running_points_are_not_proposed_while_others_are_left(cold_start_num: int) -> None:
    tuner = tuner_of(THREE, cold_start_num)
    tuner.receive_trial_result(9, {"x": 2}, 0.0)

    proposed = [tuner.generate_parameters(number)["x"] for number in range(3)]

    assert sorted(proposed) == [1, 2, 3]
    assert proposed[-1] == 2  # known already, so the last resort


@pytest.mark.parametrize("cold_start_num", [1, 10])
def test_goes_on_when_every_point_is_running(cold_start_num: int) -> None:
    tuner = tuner_of(THREE, cold_start_num)
    tuner.receive_trial_result(9, {"x": 2}, 0.0)

    assert all(tuner.generate_parameters(number)["x"] in {1, 2, 3} for number in range(9))


def test_ended_trial_is_running_no_longer() -> None:
    tuner = tuner_of(LINE)
    parameters = tuner.generate_parameters(0)
    assert tuner.state()["running"] == [[0, parameters]]

    tuner.trial_end(0, False)

    assert tuner.state()["running"] == []


def test_new_space_keeps_the_results_and_trials_that_fit() -> None:
    tuner = tuner_of(LINE)
    tuner.receive_trial_result(0, {"x": 0.25}, 1.0)
    tuner.receive_trial_result(1, {"x": 0.75}, 2.0)
    tuner.generate_parameters(2)

    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 0.5]}})
    assert observed(tuner) == [[{"x": 0.25}, 1.0]]
    tuner.update_search_space({"y": {"_type": "uniform", "_value": [0, 1]}})
    assert observed(tuner) == []
    assert tuner.state()["running"] == []


def test_results_outside_the_space_or_without_a_number_are_dropped() -> None:
    tuner = tuner_of(LINE)

    tuner.receive_trial_result(0, {"x": 7}, 1.0)
    tuner.receive_trial_result(1, {"x": 0.5}, float("nan"))
    tuner.import_data([{"parameter": {"x": 0.5}, "value": None}])

    assert observed(tuner) == []


def test_refused_space_leaves_the_old_one() -> None:
    tuner = tuner_of(LINE)

    with pytest.raises(ValueError, match="normal"):
        tuner.update_search_space({"x": {"_type": "normal", "_value": [0, 1]}})

    assert set(tuner.generate_parameters(0)) == {"x"}


def test_state_names_running_trials_as_configurations() -> None:
    tuner = tuner_of(LINE)
    parameters = tuner.generate_parameters(4)
    other = tuner_of(LINE)

    other.load_state(json.loads(json.dumps(tuner.state())))

    assert other.state()["running"] == [[4, parameters]]
    assert other.generate_parameters(5) == tuner.generate_parameters(5)


def asked(tuner: GPTuner, *, prepare: bool) -> list[JsonValue]:
    """Give what is proposed in a course with results, a failure and two requests at once."""
    if prepare:
        tuner.prepare_parameters()
    first = tuner.generate_parameters(20)
    if prepare:
        tuner.prepare_parameters()
    second = tuner.generate_parameters(21)
    if prepare:
        tuner.prepare_parameters()
    tuner.trial_end(21, False)
    third = tuner.generate_parameters(22)
    tuner.receive_trial_result(20, first, 0.5)
    if prepare:
        tuner.prepare_parameters()
        tuner.prepare_parameters()
    tuner.trial_end(20, True)
    return [first, second, third, tuner.generate_parameters(23)]


def test_prepared_points_are_those_that_would_be_chosen() -> None:
    plain, prepared = tuner_of(LINE, cold_start_num=2), tuner_of(LINE, cold_start_num=2)
    for tuner in (plain, prepared):
        for number in range(4):
            tuner.receive_trial_result(number, {"x": number / 4}, (number - 1.3) ** 2)

    assert asked(prepared, prepare=True) == asked(plain, prepare=False)
    assert prepared.state() == plain.state()


def test_new_results_and_spaces_drop_what_was_prepared() -> None:
    tuner = tuner_of(LINE, cold_start_num=1)
    tuner.import_data([{"parameter": {"x": 0.5}, "value": 1.0}])

    tuner.prepare_parameters()
    tuner.update_search_space({"y": {"_type": "uniform", "_value": [0, 1]}})

    assert set(tuner.generate_parameters(0)) == {"y"}


def complete(tuner: GPTuner, number: int, x: float, curve: list[float]) -> None:
    """Let a trial of the tuner complete with the last value of a curve."""
    tuner.generate_parameters(number)
    tuner.receive_trial_result(number, {"x": x}, curve[-1])
    tuner.trial_end(number, True, intermediate=curve)


def stop(tuner: GPTuner, number: int, curve: list[float], event: str = "EARLY_STOPPED") -> None:
    """Let a trial of the tuner end without a result."""
    tuner.generate_parameters(number)
    tuner.trial_end(number, False, event=event, intermediate=curve)


def test_stopped_trial_is_learnt_by_its_place_among_the_completed_ones() -> None:
    tuner = tuner_of(LINE)
    complete(tuner, 0, 0.2, [3.0, 1.0])
    complete(tuner, 1, 0.8, [5.0, 2.0])

    stop(tuner, 2, [4.5])

    assert [loss for _, loss in observed(tuner)] == [1.0, 2.0, 1.75]


@pytest.mark.parametrize(("event", "curve"), [("USER_CANCELED", [4.5]), ("EARLY_STOPPED", [])])
def test_trial_that_ends_without_a_reason_or_a_result_teaches_nothing(
    event: str, curve: list[float]
) -> None:
    tuner = tuner_of(LINE)
    complete(tuner, 0, 0.2, [3.0, 1.0])

    stop(tuner, 1, curve, event)

    assert len(observed(tuner)) == 1


def test_state_keeps_what_stopped_trials_are_compared_with() -> None:
    tuner, other = tuner_of(LINE), tuner_of(LINE)
    complete(tuner, 0, 0.2, [3.0, 1.0])

    other.load_state(json.loads(json.dumps(tuner.state())))
    for each in (tuner, other):
        stop(each, 1, [4.0])

    assert len(observed(tuner)) == 2
    assert other.state() == tuner.state()


def test_state_of_an_earlier_version_has_no_curves() -> None:
    tuner, other = tuner_of(LINE), tuner_of(LINE)
    complete(tuner, 0, 0.2, [3.0, 1.0])
    state = tuner.state()
    del state["curves"]

    other.load_state(state)
    stop(other, 1, [4.0])

    assert len(observed(other)) == 1


def test_curves_alone_change_no_proposal() -> None:
    plain, shown = tuner_of(LINE, 2), tuner_of(LINE, 2)
    for tuner in (plain, shown):
        for number, x in enumerate([0.1, 0.4, 0.9]):
            tuner.generate_parameters(number)
            tuner.receive_trial_result(number, {"x": x}, (x - 0.3) ** 2)
            curve = {"intermediate": [1.0, 0.5]} if tuner is shown else {}
            tuner.trial_end(number, True, **curve)

    assert shown.generate_parameters(7) == plain.generate_parameters(7)


CURVES: list[dict[str, JsonValue]] = [
    {"parameter": {"x": 0.2}, "value": 1.0, "intermediate": [3.0, 1.0]},
    {"parameter": {"x": 0.5}, "value": None, "intermediate": [4.0]},
]


def test_resumed_tuner_learns_stopped_trials_again() -> None:
    tuner = tuner_of(LINE)

    tuner.import_curves(CURVES)

    assert observed(tuner) == [[{"x": 0.5}, 2.0]]


def test_hosts_know_what_it_learns_from_and_that_it_does_not_prepare() -> None:
    assert ModelBasedTuner.imports_failures
    assert ModelBasedTuner.learns_stopped
    assert not ModelBasedTuner.prepares


def test_failed_trials_are_kept_in_their_order_among_the_results() -> None:
    tuner, other = tuner_of(LINE), tuner_of(LINE)
    for number, x in enumerate((0.1, 0.2, 0.3, 0.4)):
        tuner.receive_trial_result(number, {"x": x}, float("nan") if number % 2 else x)
    failed = tuner.generate_parameters(9)
    tuner.trial_end(9, False, event="FAILED")

    other.load_state(json.loads(json.dumps(tuner.state())))

    assert tuner.state()["failed"] == [[{"x": 0.2}, 1], [{"x": 0.4}, 2], [failed, 2]]
    assert other.state() == tuner.state()


def test_state_of_an_earlier_version_has_no_failed_trials() -> None:
    tuner, other = tuner_of(LINE), tuner_of(LINE)
    tuner.receive_trial_result(0, {"x": 0.5}, 1.0)
    state = tuner.state()
    del state["failed"]

    other.load_state(state)

    assert other.state() == tuner.state()


def test_imported_results_without_a_finite_number_are_failures() -> None:
    tuner = tuner_of(LINE)

    tuner.import_data([{"parameter": {"x": 0.5}, "value": float("nan")}])

    assert tuner.state()["failed"] == [[{"x": 0.5}, 0]]


def test_failures_outside_a_new_space_are_dropped() -> None:
    tuner = tuner_of(LINE)
    for number, x in enumerate((0.25, 0.75)):
        tuner.receive_trial_result(number, {"x": x}, float("nan"))

    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 0.5]}})

    assert tuner.state()["failed"] == [[{"x": 0.25}, 0]]


def test_nothing_is_prepared_without_a_space() -> None:
    tuner = GPTuner("minimize", seed=1)

    tuner.prepare_parameters()

    assert tuner.generate_parameters(0) == {}


def test_point_that_is_prepared_is_not_chosen_again() -> None:
    tuner, other = (tuner_of(LINE, 1) for _ in range(2))
    for each in (tuner, other):
        each.receive_trial_result(0, {"x": 0.25}, 1.0)

    tuner.prepare_parameters()
    tuner.prepare_parameters()

    assert tuner.generate_parameters(1) == other.generate_parameters(1)
    assert tuner.generate_parameters(2) == other.generate_parameters(2)


def after_four_results(cold_start_num: int) -> GPTuner:
    tuner = tuner_of(LINE, cold_start_num)
    for number in range(4):
        tuner.receive_trial_result(number, {"x": number / 4}, (number - 1.3) ** 2)
    return tuner


@pytest.mark.parametrize("cold_start_num", [4, 10])
def test_preparation_leaves_the_state_as_it_was(cold_start_num: int) -> None:
    tuner = after_four_results(cold_start_num)
    before = json.dumps(tuner.state())

    tuner.prepare_parameters()

    assert json.dumps(tuner.state()) == before


@pytest.mark.parametrize(("cold_start_num", "changed"), [(4, "model"), (10, "prior")])
def test_state_after_a_prepared_proposal_is_that_after_a_proposal(
    cold_start_num: int, changed: str
) -> None:
    prepared, plain = (after_four_results(cold_start_num) for _ in range(2))
    before = json.dumps(plain.state()[changed])

    prepared.prepare_parameters()

    assert prepared.generate_parameters(9) == plain.generate_parameters(9)
    assert prepared.state() == plain.state()
    assert json.dumps(prepared.state()[changed]) != before
