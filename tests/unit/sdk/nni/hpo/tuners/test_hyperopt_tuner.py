"""The documented front of TPE, Random and Anneal."""

import pytest

from nni.algorithms.hpo.hyperopt_tuner import HyperoptTuner
from nni.hpo import AnnealTuner, RandomTuner, TPETuner, Tuner

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
