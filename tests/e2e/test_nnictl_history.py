"""`nnictl experiment replay`, `save` and `load` on real services of two installations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nni.experiment import Experiment
from nni.experiment.errors import WrongStateError
from tests.support.experiments import INSTANT, write_experiment
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl, nnictl, shared_shape
from tests.support.ports import free_port

__all__ = ["nnictl", "shared_shape"]

pytestmark = pytest.mark.timeout(240)

LEARNER = {"name": "TPE", "classArgs": {"optimize_mode": "minimize"}}
RESTLESS = """\
import os

from nni.tuner import Tuner


class Restless(Tuner):
    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": int.from_bytes(os.urandom(4), "big") / 2**32}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Nnictl]:
    """Another installation, as if on another machine."""
    shape = LocalShape(tmp_path / "other")
    shape.folder.mkdir()
    yield Nnictl(shape)
    shape.stop()


def finished(nnictl: Nnictl, config: Path) -> str:
    experiment_id = nnictl.create(config)
    nnictl.shape.wait_for(experiment_id, "DONE", "ERROR")
    return experiment_id


def test_every_suggestion_of_a_parallel_run_is_drawn_again(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = finished(
        nnictl,
        write_experiment(tmp_path, maxTrialNumber=40, trialConcurrency=4, tuner=LEARNER),
    )
    nnictl("stop", experiment_id)

    said = nnictl("experiment", "replay", experiment_id).stdout
    data = nnictl.json("experiment", "replay", experiment_id, "--json")

    assert "All 40 suggestions" in said
    assert (data["repeatable"], data["suggestions"], data["equal"]) == (True, 40, 40)
    assert data["differences"] == []


def test_a_tuner_that_does_not_repeat_itself_is_named_with_what_differs(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    (tmp_path / "restless.py").write_text(RESTLESS)
    tuner = {"className": "restless.Restless", "codeDirectory": str(tmp_path)}
    experiment_id = finished(nnictl, write_experiment(tmp_path, tuner=tuner, maxTrialNumber=3))

    done = nnictl("experiment", "replay", experiment_id, expect=1)
    data = json.loads(nnictl("experiment", "replay", experiment_id, "--json", expect=1).stdout)

    assert "restless.Restless does not repeat itself" in done.stderr
    trials = {trial["id"] for trial in nnictl.trials(experiment_id)}
    assert all(trial_id in done.stdout for trial_id in trials)
    assert {item["trialId"] for item in data["differences"]} == trials
    assert {item["parameter"] for item in data["differences"]} == {"x"}
    assert data["equal"] == 0


def test_replay_leaves_the_experiments_folder_alone(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = finished(nnictl, write_experiment(tmp_path))
    nnictl("stop", experiment_id)
    folder = nnictl.shape.root / experiment_id
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    nnictl("experiment", "replay", experiment_id)

    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_replay_of_an_unknown_experiment_is_refused(nnictl: Nnictl) -> None:
    assert "there is no experiment" in nnictl("experiment", "replay", "unknown1", expect=1).stderr


@pytest.mark.claim("platform", 50)
def test_an_experiment_moves_to_another_installation_and_goes_on_there(
    nnictl: Nnictl, other: Nnictl, tmp_path: Path
) -> None:
    config = write_experiment(tmp_path / "code", tuner=LEARNER, maxTrialNumber=12)
    experiment_id = finished(nnictl, config)
    nnictl("stop", experiment_id)
    nnictl("experiment", "save", experiment_id, "--path", tmp_path / "out", "-s")
    archive = tmp_path / "out" / f"nni_experiment_{experiment_id}.zip"

    said = other("experiment", "load", "-p", archive, "-c", tmp_path / "new").stdout

    assert experiment_id in said
    assert (tmp_path / "new" / "trial.py").read_text() == INSTANT
    (listed,) = other.json("experiment", "list", "--all", "--json")
    assert (listed["id"], listed["status"]) == (experiment_id, "STOPPED")
    ours, theirs = other.trials(experiment_id), nnictl.trials(experiment_id)
    for trial in [*ours, *theirs]:
        del trial["logPath"], trial["stderrPath"]
    assert ours == theirs
    assert "All 12 suggestions" in other("experiment", "replay", experiment_id).stdout

    other("view", experiment_id, "--port", free_port())
    assert other.status(experiment_id)["status"] == "VIEWED"
    assert "nnimanager" not in other("log", "trial", experiment_id).stderr
    other("stop", experiment_id)

    other("resume", experiment_id, "--port", free_port())
    other("update", "trialnum", experiment_id, "--value", 20)
    other.shape.wait_for(experiment_id, "DONE", "ERROR")
    data = other.json("experiment", "replay", experiment_id, "--json")
    assert other.status(experiment_id)["trials"] == {"SUCCEEDED": 20}
    assert (data["repeatable"], data["suggestions"], data["generations"]) == (True, 20, 2)


def test_an_experiment_that_is_here_already_is_not_loaded_over(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    experiment_id = finished(nnictl, write_experiment(tmp_path / "code"))
    archive = nnictl.json("experiment", "save", experiment_id, "--path", tmp_path, "--json")["path"]

    load = ("experiment", "load", "--path", archive, "--codeDir", tmp_path / "code")
    refused = nnictl(*load, expect=1).stderr

    assert f"nnictl experiment delete {experiment_id}" in refused
    nnictl("stop", experiment_id)
    nnictl("experiment", "delete", experiment_id)
    nnictl(*load)
    assert len(nnictl.trials(experiment_id)) == 5


def test_a_damaged_archive_is_refused(nnictl: Nnictl, tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"something")

    load = ("experiment", "load", "--path", archive, "--codeDir", tmp_path / "code")
    refused = nnictl(*load, expect=2).stderr

    assert "nnictl experiment save" in refused
    assert not (tmp_path / "code").exists()


def test_replay_save_and_load_work_from_python_also_after_the_end(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    write_experiment(tmp_path)
    experiment = Experiment("local")
    experiment.config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    experiment.config.trial_command = "python3 trial.py"
    experiment.config.trial_code_directory = tmp_path
    experiment.config.trial_concurrency = 2
    experiment.config.max_trial_number = 6
    experiment.config.tuner.name = "Evolution"
    experiment.start(local_shape.free_port())
    experiment.wait_completion()
    steps: list[tuple[int, int]] = []

    open_ = experiment.replay(lambda *step: steps.append(step))
    experiment.stop()
    closed = experiment.replay()
    archive = experiment.save(tmp_path / "out", code=True)
    with pytest.raises(WrongStateError, match="is here already"):
        Experiment.load(archive, tmp_path / "new")
    Nnictl(local_shape)("experiment", "delete", experiment.id)
    loaded = Experiment.load(archive, tmp_path / "new")

    assert open_.repeatable
    assert closed.repeatable
    assert (closed.suggestions, closed.equal) == (6, 6)
    assert steps[-1][0] == steps[-1][1]
    assert loaded == experiment.id
    assert replace(experiment.replay(), duration_s=closed.duration_s) == closed
