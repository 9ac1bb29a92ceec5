"""Command lines and snippets of NNI's documentation, as written there, on an offline example."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from nni.experiment import Experiment
from tests.support.local_shape import LocalShape

QUADRATIC = Path(__file__).parents[2] / "examples" / "quadratic"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(QUADRATIC, tmp_path / "quadratic"))


def created(local_shape: LocalShape, example: Path, *words: str) -> str:
    done = local_shape.nnictl("create", "--config", str(example / "config.yml"), *words)
    found = re.search(r"The experiment id is (\w{8})", done.stdout)
    assert found, done.stdout
    return found.group(1)


@pytest.mark.timeout(240)
def test_documented_command_lines_work_as_written(
    local_shape: LocalShape, example: Path, tmp_path: Path
) -> None:
    port = str(local_shape.free_port())
    run = local_shape.nnictl
    experiment = created(local_shape, example, "--port", port, "--debug")
    space = str(example / "search_space.json")
    exported = str(tmp_path / "data.json")

    assert json.loads(run("experiment", "status").stdout)["status"]
    assert experiment in run("experiment", "list").stdout
    assert json.loads(run("experiment", "show").stdout)["id"] == experiment
    assert port in run("webui", "url").stdout
    run("update", "searchspace", experiment, "--filename", space)
    run("update", "concurrency", experiment, "--value", "3")
    run("update", "duration", experiment, "--value", "1h")
    run("update", "trialnum", experiment, "--value", "12")
    local_shape.wait_for_state(experiment, "DONE")
    run("trial", "ls")
    run("trial", "ls", "--head", "10")
    run("trial", "ls", "--tail", "10")
    run("config", "show")
    run("log", "stdout", experiment, "--tail", "5")
    run("log", "stderr", experiment)
    trial = json.loads(run("trial", "ls", experiment, "--json").stdout)[0]["id"]
    assert trial in run("log", "trial", experiment, "--trial_id", trial).stdout
    run(
        *("experiment", "export", experiment),
        *("--filename", exported, "--type", "json", "--intermediate"),
    )
    assert len(json.loads(Path(exported).read_text("utf-8"))) == 12
    run("experiment", "import", experiment, "-f", exported)
    run("stop", "--port", port)
    run("resume", experiment, "--port", port)
    run("stop", experiment)
    run("view", experiment, "--port", port)
    run("stop", "--all")
    assert experiment in run("experiment", "list", "--all").stdout
    run("experiment", "delete", experiment)
    assert run("--version").stdout.strip()


@pytest.mark.timeout(240)
def test_documented_snippet_runs_an_experiment_from_python(
    local_shape: LocalShape, example: Path
) -> None:
    port = local_shape.free_port()
    search_space = {
        "x": {"_type": "quniform", "_value": [0.1, 1, 0.1]},
        "y": {"_type": "choice", "_value": [1, 2, 3, 4]},
    }

    experiment = Experiment("local")
    experiment.config.experiment_name = "Example"
    experiment.config.trial_concurrency = 2
    experiment.config.max_trial_number = 10
    experiment.config.search_space = search_space
    experiment.config.trial_command = "python3 trial.py"
    experiment.config.trial_code_directory = example
    experiment.config.tuner.name = "TPE"
    experiment.config.tuner.class_args["optimize_mode"] = "maximize"
    experiment.config.training_service.use_active_gpu = True
    experiment.config.experiment_working_directory = local_shape.root
    assert experiment.run(port) is True

    viewed = Experiment.view(experiment.id, port, wait_completion=False)
    assert viewed.get_status() == "VIEWED"
    assert len(viewed.export_data()) == 10
    viewed.stop()

    resumed = Experiment.resume(experiment.id, port, wait_completion=False)
    connected = Experiment.connect(port)
    connected.update_max_trial_number(12)
    assert connected.get_experiment_profile()["params"]["maxTrialNumber"] == 12
    resumed.wait_completion()
    assert len(connected.get_job_metrics()) == 12
    connected.stop()
