"""The documented front of TPE, Random and Anneal."""

import pytest

from nni.algorithms.hpo.hyperopt_tuner import HyperoptTuner
from nni.hpo import AnnealTuner, RandomTuner, TPETuner, Tuner
from nni.hpo.search.managed_tuner import SearchPlan, managed

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def play(tuner: Tuner) -> list[object]:
    tuner.update_search_space(SPACE)
    seen: list[object] = []
    for parameter_id in range(25):
        parameters = tuner.generate_parameters(parameter_id)
        seen.append(parameters)
        tuner.receive_trial_result(parameter_id, parameters, parameters["x"])
        tuner.trial_end(parameter_id, True)
    return seen


def test_tpe_is_tpe() -> None:
    assert play(HyperoptTuner("tpe", seed=1)) == play(TPETuner(seed=1))


def test_random_search_is_random() -> None:
    assert play(HyperoptTuner("random_search", seed=1)) == play(RandomTuner(seed=1))


def test_anneal_is_anneal() -> None:
    assert play(HyperoptTuner("anneal", seed=1)) == play(AnnealTuner(seed=1))


def test_tpe_learns_that_an_enqueued_trial_failed() -> None:
    states = []
    for tuner in (HyperoptTuner("tpe", seed=1), TPETuner(seed=1)):
        search = managed(tuner, SearchPlan(first=({"x": 0.5},)), seed=0)
        search.update_search_space(SPACE)
        search.generate_multiple_parameters([0])
        search.trial_end(0, False, event="FAILED")
        states.append(tuner.state())

    assert states[0] == states[1]


@pytest.mark.parametrize("name", ["random_search", "anneal"])
def test_others_are_told_no_failures_of_enqueued_trials(name: str) -> None:
    assert not HyperoptTuner(name).imports_failures


@pytest.mark.parametrize("name", ["annealing", "", "TPE"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="algorithm_name must be"):
        HyperoptTuner(name)


@pytest.mark.parametrize("name", ["tpe", "random_search", "anneal"])
def test_suggestions_stand_for_no_trial(name: str) -> None:
    tuner = HyperoptTuner(name, seed=1)
    play(tuner)

    assert 0 <= tuner.get_suggestion()["x"] <= 1
    assert 0 <= tuner.get_suggestion(random_search=True)["x"] <= 1


def test_signature_defaults_to_minimize() -> None:
    assert play(HyperoptTuner("tpe", seed=1)) == play(HyperoptTuner("tpe", "minimize", seed=1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hyperopt_tpe", "tpe"),
        ("hyperopt_random", "random_search"),
        ("hyperopt_annealing", "anneal"),
    ],
)
def test_old_algorithm_name_is_refused_with_the_new_one(old: str, new: str) -> None:
    with pytest.raises(RuntimeError, match=f"got '{old}'; use '{new}'"):
        HyperoptTuner(old)


@pytest.mark.parametrize("parallel", [False, True])
def test_running_trials_are_regarded_by_tpe_only_if_that_is_asked_for(parallel: bool) -> None:
    front = HyperoptTuner("tpe", "minimize", parallel_optimize=parallel, seed=1)
    plain = TPETuner("minimize", parallel_optimize=parallel, seed=1)
    play(front)
    play(plain)

    ahead = [[tuner.generate_parameters(30 + n) for n in range(4)] for tuner in (front, plain)]

    assert ahead[0] == ahead[1]


def test_running_trials_are_not_regarded_by_default() -> None:
    default = HyperoptTuner("tpe", seed=1)
    plain = HyperoptTuner("tpe", parallel_optimize=False, seed=1)
    parallel = HyperoptTuner("tpe", parallel_optimize=True, seed=1)
    for tuner in (default, plain, parallel):
        play(tuner)

    ahead = [
        [tuner.generate_parameters(30 + n) for n in range(8)]
        for tuner in (default, plain, parallel)
    ]

    assert ahead[0] == ahead[1]
    assert ahead[0] != ahead[2]


@pytest.mark.parametrize("name", ["random_search", "anneal"])
def test_suggestions_of_the_prior_are_draws_of_the_space(name: str) -> None:
    tuner, rival = HyperoptTuner(name, seed=1), RandomTuner(seed=1)
    tuner.update_search_space(SPACE)
    rival.update_search_space(SPACE)
    tuner.receive_trial_result(0, {"x": 0.5}, 1.0)

    suggested = [tuner.get_suggestion(random_search=True) for _ in range(3)]

    assert suggested == [rival.generate_parameters(n) for n in range(3)]


def test_suggestions_follow_the_results_by_default() -> None:
    first, second = HyperoptTuner("anneal", seed=1), HyperoptTuner("anneal", seed=1)
    for tuner in (first, second):
        play(tuner)

    assert first.get_suggestion() == second.get_suggestion(random_search=False)
    assert first.get_suggestion() != second.get_suggestion(random_search=True)


def test_suggestion_may_be_a_draw_of_the_space() -> None:
    tuner, rival = HyperoptTuner("anneal", seed=4), RandomTuner(seed=4)
    for each in (tuner, rival):
        each.update_search_space(SPACE)
    for number in range(90):
        tuner.receive_trial_result(number, {"x": 0.5}, 0.0)

    assert tuner.get_suggestion(random_search=True) == rival.generate_parameters(0)
    # 90 results shrink the range to a tenth.
    assert abs(tuner.get_suggestion()["x"] - 0.5) <= 0.05


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("hyperopt_tpe", "tpe"),
        ("hyperopt_random", "random_search"),
        ("hyperopt_annealing", "anneal"),
    ],
)
def test_name_of_an_older_version_is_refused_with_that_of_today(name: str, today: str) -> None:
    with pytest.raises(RuntimeError, match=f"got '{name}'; use '{today}'"):
        HyperoptTuner(name)


def test_running_trials_have_no_results_by_default() -> None:
    default, given = (
        HyperoptTuner("tpe", seed=1),
        HyperoptTuner("tpe", "minimize", parallel_optimize=False, constant_liar_type="min", seed=1),
    )
    for tuner in (default, given):
        play(tuner)
        for number in range(30, 34):
            tuner.generate_parameters(number)

    assert default.generate_parameters(34) == given.generate_parameters(34)
