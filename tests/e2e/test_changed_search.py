"""Changes during an experiment: its search space, its tuner, and trials of the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nni.experiment import Experiment
from nni.experiment.errors import ConfigError
from tests.support import wait
from tests.support.experiments import PATIENT, trials_in_order, write_experiment
from tests.support.nnictl import Nnictl, nnictl, services_here, shared_shape
from tests.support.ports import free_port

__all__ = ["nnictl", "services_here", "shared_shape"]  # fixtures

pytestmark = pytest.mark.timeout(240)

TRIAL = """\
import signal

import nni

parameters = nni.get_next_parameter()
if parameters.get("waits"):
    signal.pause()
nni.report_final_result(float(parameters["x"]))
"""
LATER: dict[str, Any] = {"x": {"_type": "uniform", "_value": [5, 6]}}

DIARY = """\
from nni.tuner import Tuner


class Diary(Tuner):
    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": 1, "waits": True}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        self.note("result", parameter_id)

    def trial_end(self, parameter_id, success, **kwargs):
        self.note("end", parameter_id)

    def note(self, *words):
        with open("diary.txt", "a") as file:
            print(*words, file=file)
"""


def space_file(folder: Path, space: Mapping[str, Any]) -> Path:
    path = folder / "space.json"
    path.write_text(json.dumps(space), "utf-8")
    return path


def points(experiment: Experiment) -> list[Any]:
    """Return the parameters of all trials in their order."""
    return [job.hyperParameters[0].parameters for job in trials_in_order(experiment)]


def wait_for_trials(experiment: Experiment, trials: int) -> None:
    """Return when there are so many, and all have ended."""
    wait.until(lambda: len(experiment.list_trial_jobs()) == trials, 60, f"{trials} trials")
    assert experiment.wait_completion()


@pytest.mark.parametrize("meanwhile", ["nothing", "kill of the dispatcher", "stop and resume"])
def test_later_trials_lie_in_the_new_space(nnictl: Nnictl, tmp_path: Path, meanwhile: str) -> None:
    config = write_experiment(tmp_path, TRIAL, tuner={"name": "TPE"}, maxTrialNumber=4)
    experiment = nnictl.begin(config)
    assert experiment.wait_completion()

    nnictl("update", "searchspace", experiment.id, "-f", space_file(tmp_path, LATER))
    if meanwhile == "kill of the dispatcher":
        nnictl.shape.kill("dispatcher")
    elif meanwhile == "stop and resume":
        port = free_port()
        experiment.stop()
        nnictl("resume", experiment.id, "--port", port)
        experiment = Experiment.connect(port)
    experiment.update_max_trial_number(8)
    wait_for_trials(experiment, 8)
    found = points(experiment)

    assert all(point["x"] <= 1 for point in found[:4])
    assert all(5 <= point["x"] <= 6 for point in found[4:])
    assert nnictl.status(experiment.id)["errors"] == []


def test_a_grid_that_was_complete_goes_on_with_what_is_new(nnictl: Nnictl, tmp_path: Path) -> None:
    small = {"x": {"_type": "choice", "_value": [1, 2]}}
    config = write_experiment(
        tmp_path, TRIAL, tuner={"name": "GridSearch"}, searchSpace=small, maxTrialNumber=9
    )
    experiment = nnictl.begin(config)
    assert experiment.wait_completion()

    large = {"x": {"_type": "choice", "_value": [1, 2, 3, 4]}}
    nnictl("update", "searchspace", experiment.id, "-f", space_file(tmp_path, large))
    wait_for_trials(experiment, 4)

    assert sorted(point["x"] for point in points(experiment)) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("space", "error"),
    [
        ({"x": {"_type": "unifrom", "_value": [0, 1]}}, "unifrom"),
        ({"x": {"_type": "choice", "_value": ["a", "b"]}}, "GPTuner"),
        (LATER | {"_constraints": ["x > 7"]}, "none of 10000 draws"),
    ],
    ids=["unknown type", "not for this tuner", "allows nothing"],
)
def test_a_space_that_cannot_be_searched_changes_nothing(
    nnictl: Nnictl, tmp_path: Path, space: dict[str, Any], error: str
) -> None:
    experiment = nnictl.begin(write_experiment(tmp_path, PATIENT, tuner={"name": "GPTuner"}))
    before = experiment.get_experiment_profile()

    refused = nnictl(
        "update", "searchspace", experiment.id, "-f", space_file(tmp_path, space), expect=2
    )

    assert error in refused.stderr
    after = experiment.get_experiment_profile()
    assert after["params"]["searchSpace"] == before["params"]["searchSpace"]
    assert after["revision"] == before["revision"]


def test_an_algorithm_that_keeps_its_first_space_says_so(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment = nnictl.begin(write_experiment(tmp_path, PATIENT, tuner={"name": "SMAC"}))
    before = experiment.get_experiment_profile()

    refused = nnictl(
        "update", "searchspace", experiment.id, "-f", space_file(tmp_path, LATER), expect=2
    )

    assert "SMAC keeps the search space that it began with" in refused.stderr
    assert experiment.get_experiment_profile()["revision"] == before["revision"]


def test_python_api_raises_the_same_error(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment = nnictl.begin(write_experiment(tmp_path, PATIENT))

    with pytest.raises(ConfigError, match="unifrom"):
        experiment.update_search_space({"x": {"_type": "unifrom", "_value": [0, 1]}})


def tuner_file(folder: Path, name: str, mode: str = "maximize") -> Path:
    path = folder / "tuner.yml"
    arguments = "" if name == "Random" else f"  classArgs: {{optimize_mode: {mode}}}\n"
    path.write_text(f"tuner:\n  name: {name}\n{arguments}", "utf-8")
    return path


def test_another_tuner_takes_over_a_running_experiment(nnictl: Nnictl, tmp_path: Path) -> None:
    space = {
        "x": {"_type": "uniform", "_value": [0, 1]},
        "y": {"_type": "choice", "_value": ["a", "b"]},
    }
    config = write_experiment(
        tmp_path, TRIAL, tuner={"name": "Random"}, searchSpace=space, maxTrialNumber=3
    )
    experiment = nnictl.begin(config)
    assert experiment.wait_completion()
    update = ("update", "tuner", experiment.id, "-f")

    unknown = nnictl(*update, tuner_file(tmp_path, "Nonsense"), expect=2)
    unsupported = nnictl(*update, tuner_file(tmp_path, "GPTuner"), expect=2)
    forgetful = nnictl(*update, tuner_file(tmp_path, "PBTTuner"), expect=2)
    opposite = nnictl(*update, tuner_file(tmp_path, "TPE", "minimize"), expect=2)
    nnictl(*update, tuner_file(tmp_path, "TPE"))
    experiment.update_max_trial_number(6)
    wait_for_trials(experiment, 6)
    nnictl(*update, tuner_file(tmp_path, "TPE"))
    experiment.update_max_trial_number(9)
    wait_for_trials(experiment, 9)

    assert "Nonsense" in unknown.stderr
    assert "GPTuner" in unsupported.stderr
    assert "tuner.name must learn the results of earlier trials" in forgetful.stderr
    assert "optimize_mode must be maximize, as the results so far are ranked" in opposite.stderr
    tuners = ["Random", "TPE", "TPE (tuner 3)"]
    proposers = [job.tuner for job in trials_in_order(experiment)]
    assert proposers == [tuner for tuner in tuners for _ in range(3)]
    shown = nnictl.json("experiment", "compare", experiment.id, "--json")
    assert [(row["tuner"], row["trials"]) for row in shown["tuners"]] == [(t, 3) for t in tuners]
    assert nnictl.status(experiment.id)["errors"] == []


def waiting(experiment: Experiment) -> str:
    """Wait for the one trial that runs until it is killed; give its id."""

    def found() -> str:
        running = (j.trialJobId for j in experiment.list_trial_jobs() if j.status == "RUNNING")
        return next(running, "")

    return wait.until(found, 60, "a trial that waits")


def test_own_trials_count_and_are_shown_but_not_learnt(nnictl: Nnictl, tmp_path: Path) -> None:
    (tmp_path / "diary.py").write_text(DIARY, "utf-8")
    config = write_experiment(
        tmp_path,
        TRIAL,
        tuner={"className": "diary.Diary", "codeDirectory": str(tmp_path)},
        trialConcurrency=1,
        maxTrialNumber=3,
    )
    experiment = nnictl.begin(config)
    first = waiting(experiment)

    nnictl("trial", "add", experiment.id, "-P", '{"x": 9, "flag": true}')
    experiment.add_trial({"x": 7})
    no_room = nnictl("trial", "add", experiment.id, "-P", '{"x": 5}', expect=1)
    experiment.kill_trial_job(first)
    assert experiment.wait_completion()

    assert "has no trial left" in no_room.stderr
    assert points(experiment)[1:] == [{"x": 9, "flag": True}, {"x": 7}]
    own = trials_in_order(experiment)[1:]
    assert {job.hyperParameters[0].parameter_source for job in own} == {"customized"}
    assert [job.finalMetricData[0].data for job in own] == [9.0, 7.0]
    diary = nnictl.shape.root / experiment.id / "log" / "diary.txt"
    # The experiment is DONE when its trials have ended; the tuner is notified later.
    written = wait.until(lambda: diary.exists() and diary.read_text("utf-8"), 60, "the diary")
    assert written == "end 0\n"


def test_batch_goes_on_around_own_trials(nnictl: Nnictl, tmp_path: Path) -> None:
    options = [{"x": 1, "waits": True}, {"x": 2}]
    config = write_experiment(
        tmp_path,
        TRIAL,
        tuner={"name": "BatchTuner"},
        searchSpace={"combine_params": {"_type": "choice", "_value": options}},
        trialConcurrency=1,
        maxTrialNumber=9,
    )
    experiment = nnictl.begin(config)
    first = waiting(experiment)

    experiment.add_trial({"x": 9})
    experiment.kill_trial_job(first)
    assert experiment.wait_completion()

    assert sorted(point["x"] for point in points(experiment)) == [1, 2, 9]
    assert nnictl.status(experiment.id)["errors"] == []
