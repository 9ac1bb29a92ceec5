"""Small experiment of each algorithm that defers requests, with the real services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nni.experiment import Experiment, TrialJob
from tests.support import wait
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl, shared_shape

__all__ = ["shared_shape"]  # a fixture

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "layers": {"_type": "randint", "_value": [1, 9]},
}
TRIAL = """\
import nni

parameters = nni.get_next_parameter()
value = parameters["x"] + parameters["layers"]
for step in range(8):
    nni.report_intermediate_result(value * (1 - 0.6**step))
nni.report_final_result(value)
"""
CHECKPOINTED = """\
import pathlib

import nni

parameters = nni.get_next_parameter()
load, save = (pathlib.Path(parameters[f"{verb}_checkpoint_dir"]) for verb in ("load", "save"))
steps = int((load / "steps").read_text()) if (load / "steps").exists() else 0
save.mkdir(parents=True, exist_ok=True)
(save / "steps").write_text(str(steps + 1))
nni.report_final_result({"default": parameters["x"], "steps": steps + 1})
"""
GOING_ON = """\
import pathlib

import nni

parameters = nni.get_next_parameter()
load = pathlib.Path(parameters.get("load_checkpoint_dir", "none")) / "steps"
save = pathlib.Path(parameters["save_checkpoint_dir"])
before = int(load.read_text()) if load.exists() else 0
save.mkdir(parents=True, exist_ok=True)
(save / "steps").write_text(str(parameters["TRIAL_BUDGET"]))
trained = parameters["TRIAL_BUDGET"] - before
nni.report_final_result({"default": parameters["x"], "trained": trained})
"""
ARCHITECTURES = """\
import nni
from nni.networkmorphism_tuner.graph import json_to_graph

text = nni.get_next_parameter()
assert isinstance(text, str), type(text)
nni.report_final_result(len(json_to_graph(text).layers))
"""


@pytest.fixture(autouse=True)
def services(shared_shape: LocalShape, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("HOME", "NNI_HOME", "PATH"):
        monkeypatch.setenv(name, shared_shape.environment[name])
    yield
    Nnictl(shared_shape)("stop", "--all")


def prepared(
    folder: Path, trials: int, concurrency: int, script: str, **algorithms: Any
) -> Experiment:
    """Make an experiment that runs `script`."""
    (folder / "trial.py").write_text(script, "utf-8")
    experiment = Experiment("local")
    experiment.config.search_space = SPACE
    experiment.config.trial_command = "python3 trial.py"
    experiment.config.trial_code_directory = folder
    experiment.config.trial_concurrency = concurrency
    experiment.config.max_trial_number = trials
    for section, algorithm in algorithms.items():
        setattr(experiment.config, section, algorithm)
    return experiment


def finished(
    folder: Path, trials: int, concurrency: int, script: str = TRIAL, **algorithms: Any
) -> list[TrialJob]:
    """Run an experiment to its end and give its trials in the order of their start."""
    experiment = prepared(folder, trials, concurrency, script, **algorithms)
    experiment.start(0)
    try:
        assert experiment.wait_completion()
        jobs = experiment.list_trial_jobs()
    finally:
        experiment.stop()
    assert len(jobs) == trials
    return sorted(jobs, key=lambda job: job.sequenceId)


def ended(experiment: Experiment) -> int:
    """Count the trials that have ended."""
    return sum(job.status == "SUCCEEDED" for job in experiment.list_trial_jobs())


def parameters_of(job: TrialJob) -> dict[str, Any]:
    given: dict[str, Any] = job.hyperParameters[0].parameters
    return given


def final_of(job: TrialJob) -> dict[str, Any]:
    found: dict[str, Any] = job.finalMetricData[0].data
    return found


def budgets(jobs: list[TrialJob]) -> list[int]:
    return sorted(parameters_of(job)["TRIAL_BUDGET"] for job in jobs)


def test_evolution_serves_what_it_had_to_defer(tmp_path: Path) -> None:
    tuner = {"name": "Evolution", "class_args": {"population_size": 4}}

    jobs = finished(tmp_path, trials=16, concurrency=6, tuner=tuner)

    assert all(job.status == "SUCCEEDED" for job in jobs)


@pytest.mark.parametrize("mode", ["serial", "parallelism"])
def test_hyperband_runs_its_brackets(tmp_path: Path, mode: str) -> None:
    advisor = {"name": "Hyperband", "class_args": {"R": 9, "exec_mode": mode}}

    jobs = finished(tmp_path, trials=13, concurrency=12, advisor=advisor)

    if mode == "serial":
        assert budgets(jobs) == [1] * 9 + [3] * 3 + [9]
        values = {parameters_of(job)["x"] + parameters_of(job)["layers"] for job in jobs}
        (last,) = (job for job in jobs if parameters_of(job)["TRIAL_BUDGET"] == 9)
        assert parameters_of(last)["x"] + parameters_of(last)["layers"] == max(values)
    else:
        assert budgets(jobs)[:9] == [1] * 9


def test_bohb_runs_its_brackets(tmp_path: Path) -> None:
    advisor = {"name": "BOHB", "class_args": {"max_budget": 9, "optimize_mode": "minimize"}}

    jobs = finished(tmp_path, trials=19, concurrency=6, advisor=advisor)

    assert budgets(jobs) == [1] * 9 + [3] * 8 + [9] * 2


def test_bohb_continues_from_checkpoints_without_waiting_trials(tmp_path: Path) -> None:
    arguments = {"max_budget": 9, "exec_mode": "asynchronous", "checkpoints": True, "seed": 0}
    advisor = {"name": "BOHB", "class_args": arguments}

    jobs = finished(tmp_path, trials=17, concurrency=4, script=GOING_ON, advisor=advisor)

    assert [job.status for job in jobs] == ["SUCCEEDED"] * 17
    given = [(parameters_of(job)["TRIAL_BUDGET"], final_of(job)["trained"]) for job in jobs]
    # Of the first bracket 9 trials begin; those that go on train only what is missing. Which of the
    # brackets is served first depends on which trial ends first.
    assert sorted(given)[:9] == [(1, 1)] * 9
    assert (3, 2) in given
    assert set(given) <= {(1, 1), (3, 2), (9, 6), (3, 3), (9, 9)}


def test_population_based_training_hands_checkpoints_on(tmp_path: Path) -> None:
    tuner = {
        "name": "PBTTuner",
        "class_args": {"population_size": 4, "all_checkpoint_dir": str(tmp_path / "checkpoints")},
    }

    jobs = finished(tmp_path, trials=12, concurrency=6, script=CHECKPOINTED, tuner=tuner)

    steps = [parameters_of(job)["save_checkpoint_dir"].rpartition("/")[2] for job in jobs]
    assert sorted(steps) == ["0"] * 4 + ["1"] * 4 + ["2"] * 4
    trained = sorted((tmp_path / "checkpoints").glob("*/2/steps"))
    assert [path.read_text() for path in trained] == ["3"] * 4


def test_curve_fitting_and_anneal_see_a_run_through(tmp_path: Path) -> None:
    assessor = {"name": "Curvefitting", "class_args": {"epoch_num": 20, "start_step": 6}}

    jobs = finished(tmp_path, 10, 2, tuner={"name": "Anneal"}, assessor=assessor)

    assert {job.status for job in jobs} <= {"SUCCEEDED", "EARLY_STOPPED"}


@pytest.mark.parametrize(
    ("name", "class_args"),
    [
        ("GPTuner", {"cold_start_num": 4}),
        ("MetisTuner", {"cold_start_num": 4}),
        ("DNGOTuner", {"trials_per_update": 4, "num_epochs_per_training": 20}),
        ("SMAC", {"config_dedup": True}),
    ],
)
def test_tuner_with_a_model_gets_past_its_first_trials(
    tmp_path: Path, name: str, class_args: dict[str, Any]
) -> None:
    tuner = {"name": name, "class_args": {**class_args, "optimize_mode": "minimize"}}

    jobs = finished(tmp_path, trials=10, concurrency=3, tuner=tuner)

    assert all(job.status == "SUCCEEDED" for job in jobs)
    points = [(parameters_of(job)["x"], parameters_of(job)["layers"]) for job in jobs]
    assert len(set(points)) == 10


def test_network_morphism_hands_architectures_out(tmp_path: Path) -> None:
    tuner = {"name": "NetworkMorphism", "class_args": {"input_width": 8, "seed": 0}}

    jobs = finished(tmp_path, 4, 2, script=ARCHITECTURES, tuner=tuner)

    assert [job.status for job in jobs] == ["SUCCEEDED"] * 4
    assert len({job.hyperParameters[0].parameters for job in jobs}) == 4


KILLED: dict[str, dict[str, Any]] = {
    "tuner": {"name": "Evolution", "class_args": {"population_size": 4}},
    "advisor": {"name": "Hyperband", "class_args": {"R": 9, "exec_mode": "serial"}},
}
SLOW = TRIAL + "__import__('time').sleep(0.05)\n"


@pytest.mark.parametrize("section", KILLED)
def test_deferred_requests_survive_a_kill(
    tmp_path: Path, shared_shape: LocalShape, section: str
) -> None:
    experiment = prepared(tmp_path, 20, 12, SLOW, **{section: KILLED[section]})
    experiment.start(0)
    try:
        wait.until(lambda: ended(experiment) >= 6, 60, "6 trials")
        wait.until(lambda: "dispatcher" in shared_shape.pids(), 60, "a dispatcher")
        shared_shape.kill("dispatcher")
        assert experiment.wait_completion()
        jobs = experiment.list_trial_jobs()
    finally:
        experiment.stop()

    assert [job.status for job in jobs] == ["SUCCEEDED"] * 20
    assert sorted(job.sequenceId for job in jobs) == list(range(20))
    if section == "advisor":
        assert budgets(jobs) == [1] * 9 + [3] * 3 + [3] * 3 + [9] * 5
