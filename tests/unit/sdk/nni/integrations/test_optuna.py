import pickle
from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from nni.hpo import Study, optimize
from nni.integrations import (
    NNISampler,
    OptunaTuner,
    optuna_samples,
    optuna_search_space,
    to_optuna,
)

SPACE = {
    "x": {"_type": "uniform", "_value": [-2, 2]},
    "model": {
        "_type": "choice",
        "_value": ["flat", {"_name": "deep", "layers": {"_type": "randint", "_value": [1, 5]}}],
    },
    "noise": {"_type": "lognormal", "_value": [0, 1]},
    "steps": {"_type": "quniform", "_value": [0, 9, 2]},
}


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def loss(parameters: Any) -> float:
    layers = parameters["model"]["layers"] if isinstance(parameters["model"], dict) else 6
    return float(parameters["x"] ** 2 + layers + parameters["noise"])


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1, 1)
    depth = trial.suggest_int("depth", 1, 8, log=True)
    kind = trial.suggest_categorical("kind", ["a", None])
    return x**2 + depth + (kind is None)


def optuna_study(sampler: Any = None, trials: int = 8) -> optuna.Study:
    study = optuna.create_study(sampler=sampler or optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=trials)
    return study


def test_a_sampler_of_optuna_tunes_a_nested_space() -> None:
    found = optimize(loss, SPACE, tuner=OptunaTuner("TPESampler", seed=0), trials=40)

    assert found.best_value < 2.5  # the least loss is above 1
    assert found.best_parameters["model"]["layers"] == 1
    assert {trial.parameters["steps"] for trial in found.trials} <= {0, 2, 4, 6, 8, 9}


def test_the_seed_of_a_sampler_repeats_the_search() -> None:
    first, second = (
        [
            trial.parameters
            for trial in optimize(loss, SPACE, tuner=OptunaTuner(seed=3), trials=5).trials
        ]
        for _ in range(2)
    )

    assert first == second


def test_failed_and_open_trials_and_results_of_others_reach_the_sampler() -> None:
    tuner = OptunaTuner(optimize_mode="maximize", seed=0)
    study = Study(
        {"x": SPACE["x"]},
        tuner=tuner,
        optimize_mode="maximize",
        warm_start_from=[{"parameter": {"x": 1.5}, "value": 3}],
    )

    failed, succeeded, _ = (study.ask() for _ in range(3))
    study.tell(failed, None)
    study.tell(succeeded, 1.0)

    states = [trial.state.name for trial in tuner._study.trials]
    assert sorted(states) == ["COMPLETE", "COMPLETE", "FAIL", "RUNNING"]
    assert tuner._study.best_value == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"sampler": "Sampler"}, "must be one of .*TPESampler.*, got 'Sampler'"),
        ({"sampler_args": {"speed": 1}}, "sampler_args do not fit TPESampler"),
        ({"optimize_mode": "max"}, "optimize_mode"),
        (
            {"sampler": optuna.samplers.RandomSampler(), "sampler_args": {"seed": 1}},
            "sampler_args must be left out",
        ),
    ],
    ids=["sampler", "sampler_args", "mode", "object"],
)
def test_a_wrong_argument_of_the_tuner_is_named(arguments: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        OptunaTuner(**arguments)


def test_constraints_are_refused() -> None:
    with pytest.raises(ValueError, match="no constraints between parameters"):
        OptunaTuner().update_search_space({"x": SPACE["x"], "_constraints": ["x <= 1"]})


def test_a_tuner_samples_for_optuna() -> None:
    study = optuna_study(NNISampler("TPE", seed=0), trials=40)

    assert study.best_value < 1.2  # the least one is 1
    assert {type(trial.params["depth"]) for trial in study.trials} == {int}


def test_a_given_space_is_proposed_from_the_first_trial() -> None:
    space = {"x": FloatDistribution(-1, 1), "depth": IntDistribution(1, 8, log=True)}

    first, second = (
        [
            trial.params
            for trial in optuna_study(NNISampler("Anneal", search_space=space, seed=1), 4).trials
        ]
        for _ in range(2)
    )

    assert first == second


def test_failed_trials_do_not_disturb_the_sampler() -> None:
    study = optuna.create_study(sampler=NNISampler("TPE", seed=0))

    def failing(trial: optuna.Trial) -> float:
        if trial.number % 3 == 1:
            raise optuna.TrialPruned
        return objective(trial)

    study.optimize(failing, n_trials=12)

    assert len(study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))) == 8


@pytest.mark.parametrize(("error", "learned"), [(ArithmeticError, 2), (optuna.TrialPruned, 0)])
def test_sampler_learns_where_trials_fail(error: type[Exception], learned: int) -> None:
    sampler: Any = NNISampler("TPE", search_space={"x": FloatDistribution(-1, 1)}, seed=0)
    study = optuna.create_study(sampler=sampler)

    def failing(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1, 1)
        if trial.number in {1, 3}:
            raise error
        return x

    study.optimize(failing, n_trials=5, catch=ArithmeticError)

    assert len(sampler._tuner.state()["failed"]) == learned


def test_an_exhausted_tuner_stops_the_study() -> None:
    space = {"n": IntDistribution(1, 3)}
    study = optuna.create_study(sampler=NNISampler("GridSearch", search_space=space))

    study.optimize(lambda trial: trial.suggest_int("n", 1, 3), n_trials=20)

    assert {trial.params["n"] for trial in study.trials} == {1, 2, 3}
    assert len(study.trials) <= 4


def test_sampler_continues_a_study_in_another_process() -> None:
    study = optuna_study(trials=6)
    copied = pickle.loads(pickle.dumps(NNISampler("TPE", seed=0)))
    study.sampler = copied

    study.optimize(objective, n_trials=4)

    assert copied._known == set(range(10))


def test_several_objectives_are_refused() -> None:
    space = {"x": FloatDistribution(0, 1)}
    sampler = NNISampler("TPE", search_space=space)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)

    with pytest.raises(ValueError, match="multi-objective"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0), n_trials=1)
    with pytest.raises(ValueError, match="study must have one objective, got 2"):
        optuna_samples(study)


def test_a_wrong_tuner_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="Nothing"):
        NNISampler("Nothing")


def test_a_study_of_optuna_warms_up_a_search() -> None:
    study = optuna_study()
    space = optuna_search_space(study)

    found = Study(space, tuner="TPE", warm_start_from=optuna_samples(study), seed=0)

    assert space["depth"] == {"_type": "qloguniform", "_value": [1, 8, 1]}
    assert found.ask().parameters.keys() == space.keys()


def test_a_study_without_trials_has_no_space() -> None:
    with pytest.raises(ValueError, match="must have a completed trial"):
        optuna_search_space(optuna.create_study())


def test_results_are_written_into_a_study_of_optuna() -> None:
    found = optimize(loss, SPACE, tuner="Random", trials=10, seed=0)
    into = optuna.create_study()

    study = to_optuna(found, SPACE, study=into)

    assert study is into
    assert [trial.value for trial in study.trials] == [trial.value for trial in found.trials]
    assert study.best_params["x"] == found.best_parameters["x"]
    assert any("model/deep/layers" in trial.params for trial in study.trials)
    assert to_optuna(found, SPACE, optimize_mode="maximize").direction.name == "MAXIMIZE"


def test_sampler_learns_what_pruned_trials_have_reported() -> None:
    sampler: Any = NNISampler("TPE", search_space={"x": FloatDistribution(-1, 1)}, seed=0)
    study = optuna.create_study(sampler=sampler)

    def pruned(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1, 1)
        trial.report(trial.number + 3.0, 10)
        if trial.number:
            raise optuna.TrialPruned
        return x - x + 1.0

    study.optimize(pruned, n_trials=2)

    assert [loss for _, loss in sampler._tuner.state()["observed"]] == [1.0, 2.0]


def test_cost_aware_sampler_learns_the_run_times_of_its_own_and_of_other_trials() -> None:
    space = {"x": FloatDistribution(-1, 1), "depth": IntDistribution(1, 8, log=True)}
    study = optuna_study(trials=2)
    sampler: Any = NNISampler("auto", {"cost_aware": True}, search_space=space, seed=0)
    study.sampler = sampler

    study.optimize(objective, n_trials=2)

    assert len(sampler._tuner.state()["costs"]["measured"]) == 4
